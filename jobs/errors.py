"""Errors of job specs (SPEC-...) and of running jobs (JOB-...)."""

from __future__ import annotations

from penstock.sizing.errors import DocumentError, RunFailed, ToolMissing


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


class TopicsDisagree(DocumentError):
    """Two jobs of an environment ask different things of one topic."""

    code = "SPEC-013"
    title = "two jobs disagree about a topic"


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
    """The checkpoint lacks Penstock's record of a committed micro-batch, or the commits, or an object of it is empty or broken."""

    code = "JOB-008"
    title = "the checkpoint is damaged"


class BucketUnreachable(RunFailed):
    """A bucket does not exist, does not answer or refuses."""

    code = "JOB-009"
    title = "a bucket can't be used"


class NoKafkaCredentials(ToolMissing):
    """The brokers know their clients by AWS credentials, and there are none, or they can't be had."""

    code = "JOB-010"
    title = "there are no AWS credentials for the Kafka brokers"


class TransactionsRefused(RunFailed):
    """The brokers do not let an exactly-once sink write in transactions as its settings ask."""

    code = "JOB-060"
    title = "the brokers refuse the sink's transactions"


class MarksDisagree(RunFailed):
    """The brokers hold marks of a micro-batch that this checkpoint has not written yet: another copy of it has gone on by itself."""

    code = "JOB-061"
    title = "another run has written under this checkpoint's name"


class NotRepeatable(RunFailed):
    """Rows for an exactly-once sink are computed by something that would give others when a micro-batch is run again."""

    code = "JOB-062"
    title = "an exactly-once sink would get rows that no replay repeats"


class MarksExpired(RunFailed):
    """A micro-batch was cut off so long ago that the brokers may have forgotten which part of it they have."""

    code = "JOB-063"
    title = "the brokers may have forgotten what they have of a micro-batch"


class UnknownConnection(RunFailed):
    """The spec names a connection that the environment does not give."""

    code = "JOB-050"
    title = "the environment has no such connection"


class ConnectionOfAnotherKind(RunFailed):
    """The environment gives a connection of that name, and it leads to something else than the spec needs."""

    code = "JOB-051"
    title = "a connection leads to something else"


class SecretUnusable(RunFailed):
    """The secret with a connection's credentials can't be had from AWS Secrets Manager, or does not hold them."""

    code = "JOB-052"
    title = "a connection's secret can't be used"


class DatabaseUnreachable(RunFailed):
    """A database does not answer, or does not let the job in. Nothing is lost: the micro-batch is not committed, and runs again."""

    code = "JOB-053"
    title = "a database can't be reached"


class TableDoesNotFit(RunFailed):
    """The table of a sink is not there, lacks a column, or has no unique constraint on the key."""

    code = "JOB-054"
    title = "the table does not fit its sink"


class RowsRefused(RunFailed):
    """A database refuses rows for what is in them. Nothing of their task is written."""

    code = "JOB-055"
    title = "a database refuses rows"


class WebhookFailed(RunFailed):
    """An endpoint refuses what a webhook sends, or does not answer after all attempts."""

    code = "JOB-056"
    title = "a webhook's endpoint does not take the rows"


class SinkFunctionFailed(RunFailed):
    """The function of a sink is not in the app's module, or raised."""

    code = "JOB-057"
    title = "the function of a sink failed"


class QuarantineLimitReached(RunFailed):
    """So many records of a micro-batch do not parse that the spec wants the job to stop. Nothing of the micro-batch is written."""

    code = "JOB-070"
    title = "too many records would go to quarantine"


class LookupTableDoesNotFit(RunFailed):
    """The table of a lookup is not there, lacks a column, or has several rows under one key."""

    code = "JOB-071"
    title = "the table does not fit its lookup"


class LookupRefused(RunFailed):
    """A database refuses a lookup for what is in it: rights, a value that a type can't hold. Asking again would not help."""

    code = "JOB-072"
    title = "a database refuses a lookup"


class AvroSchemaUnread(DocumentError):
    """The file of an Avro schema is not beside the spec, or can't be read."""

    code = "SPEC-030"
    title = "the Avro schema can't be read"


class OffsetGone(RunFailed):
    """A consumer group has committed an offset that its topic has no longer, or not yet: records would be left out or read twice."""

    code = "JOB-020"
    title = "a committed offset is not in its topic"


class SocketHasNoPast(RunFailed):
    """A job that reads a socket has a checkpoint: what the server has sent before can't be asked for again, so nothing can go on."""

    code = "JOB-021"
    title = "a job with a socket can't go on from a checkpoint"


class SqlRefused(DocumentError):
    """A statement of an SQL app is no such statement, or can't be built from the streams that it names."""

    code = "SPEC-045"
    title = "an SQL app can't be taken as it stands"


class TableFileUnread(RunFailed):
    """A file that rows are joined with is not there, may not be read by the job, or does not hold what its form says."""

    code = "JOB-073"
    title = "a table's file can't be read"
