"""Errors of job specs (SPEC-...) and of running jobs (JOB-...)."""

from __future__ import annotations

from sizing.errors import DocumentError, RunFailed


class UnreadableDocument(DocumentError):
    """The file is missing, is a folder, or is not text in UTF-8."""

    code = "SPEC-001"
    title = "the document can't be read"


class BrokenYaml(DocumentError):
    """The text is not YAML, or is no mapping of names to values."""

    code = "SPEC-002"
    title = "the YAML is broken"


class DuplicateKey(DocumentError):
    """A mapping has the same key twice, of which YAML would silently take the last."""

    code = "SPEC-003"
    title = "a key stands twice"


class UnknownField(DocumentError):
    """A field that the document does not know, often a slip of the pen."""

    code = "SPEC-004"
    title = "unknown field"


class MissingField(DocumentError):
    """A field that has no default is not there."""

    code = "SPEC-005"
    title = "a required field is missing"


class BadValue(DocumentError):
    """A value is of another type, or outside of what is allowed."""

    code = "SPEC-006"
    title = "a value that can't be taken"


class BadQuantity(DocumentError):
    """A memory, a CPU or a duration is not written as a quantity."""

    code = "SPEC-007"
    title = "not a quantity"


class Contradiction(DocumentError):
    """Two fields that are each right can't both hold."""

    code = "SPEC-008"
    title = "two fields contradict each other"


class AppNotFound(DocumentError):
    """No module of the app's name lies in any of the places searched."""

    code = "SPEC-009"
    title = "the app does not exist"


class AppLiteral(DocumentError):
    """PARALLELISM or OPERATORS is computed, imported, conditional or out of range, so that it can't be known without running the app."""

    code = "SPEC-010"
    title = "PARALLELISM and OPERATORS must be literals of the app's module"


class DocumentTooLarge(DocumentError):
    """The document is larger, or nests deeper, than any document of its kind has to."""

    code = "SPEC-011"
    title = "the document is too large"


class AppSyntax(DocumentError):
    """The app's module is no Python that can be read."""

    code = "SPEC-012"
    title = "the app's module can't be read"


class NotAFlinkDeployment(DocumentError):
    """The document is of another kind or version than the FlinkDeployment that a spec can be made from."""

    code = "SPEC-020"
    title = "no FlinkDeployment"


class FlinkSession(DocumentError):
    """A session cluster, or a job of one: the cluster's size says nothing of a single job."""

    code = "SPEC-021"
    title = "a Flink session can't be turned into a job spec"


class BrokersUnreachable(RunFailed):
    """No broker answers."""

    code = "JOB-001"
    title = "no Kafka broker answers"


class TopicNotFound(RunFailed):
    """A topic of the spec is not on the brokers."""

    code = "JOB-002"
    title = "a topic is not there"


class AppFailed(RunFailed):
    """The app's module can't be imported, or its `build` raised."""

    code = "JOB-003"
    title = "the app failed before its query started"


class BadDeclaration(RunFailed):
    """The app declares what its spec does not have, or leaves out what it must declare."""

    code = "JOB-004"
    title = "the app and its spec do not fit"


class QueryFailed(RunFailed):
    """The streaming query stopped with an error of the engine."""

    code = "JOB-005"
    title = "the query failed"


class StagedPartGone(RunFailed):
    """A part file that a manifest names is neither staged nor published."""

    code = "JOB-006"
    title = "a staged part file is gone"


class ReplayDiffers(RunFailed):
    """A micro-batch that is run again gives other rows than the first time."""

    code = "JOB-007"
    title = "a replayed micro-batch has other rows than before"


class CheckpointDamaged(RunFailed):
    """The checkpoint has a committed micro-batch without Penstock's record of it."""

    code = "JOB-008"
    title = "the checkpoint is damaged"


class BucketUnreachable(RunFailed):
    """A bucket does not exist, does not answer or refuses."""

    code = "JOB-009"
    title = "a bucket can't be used"
