"""Errors of job specs and of the files beside them (SPEC-..., JOB-...)."""

from __future__ import annotations

from penstock.sizing.errors import DocumentError, RunFailed


class FeedbackUnusable(DocumentError):
    """A feedback topic that the job can't read again: no source names it or reads its values, or the run is bounded."""

    code = "SPEC-016"
    title = "feedback can't come back"


class PackageShadowed(DocumentError):
    """A folder that goes to Spark's Python workers has a module or package named `penstock`, which hides Penstock itself."""

    code = "SPEC-046"
    title = "name taken by Penstock"


class AppNotFound(DocumentError):
    """None of the searched folders contains a module with the app's name."""

    code = "SPEC-009"
    title = "app not found"


class AppLiteral(DocumentError):
    """PARALLELISM or OPERATORS is computed, imported, conditional or out of range, so it cannot be read without running the app."""

    code = "SPEC-010"
    title = "PARALLELISM and OPERATORS must be literals in the app's module"


class AppSyntax(DocumentError):
    """The app's module is not valid Python or cannot be read."""

    code = "SPEC-012"
    title = "cannot parse the app's module"


class TopicsDisagree(DocumentError):
    """Two jobs of an environment request different settings for the same topic."""

    code = "SPEC-013"
    title = "conflicting topic settings"


class ParallelismNotOverridden(DocumentError):
    """An environment sets the parallelism of a job whose spec can't have another one."""

    code = "SPEC-014"
    title = "parallelism can't be overridden"


class ClientPropertyRefused(DocumentError):
    """Penstock or Spark sets the Kafka client property itself, or Kafka's client has none of this name."""

    code = "SPEC-015"
    title = "Kafka client property not allowed"


class ForeignProfile(DocumentError):
    """The document is no profile of a job, or of another release's format."""

    code = "PROF-001"
    title = "not a profile of a job"


class ProfileOfAnotherJob(DocumentError):
    """A profile was measured of a job with another name."""

    code = "PROF-002"
    title = "profile of another job"


class ProfileOutdated(DocumentError):
    """The app, or what the spec says of the job's work, has changed since the profile was measured."""

    code = "PROF-003"
    title = "profile of another version of the job"


class UnknownConnection(RunFailed):
    """The spec refers to a connection that the environment does not define."""

    code = "JOB-050"
    title = "connection not found in the environment"


class ConnectionOfAnotherKind(RunFailed):
    """The environment defines the connection with a URL of another type than the spec needs."""

    code = "JOB-051"
    title = "connection has the wrong type"


class AvroSchemaUnread(DocumentError):
    """The Avro schema file does not exist beside the spec, or cannot be read."""

    code = "SPEC-030"
    title = "cannot read the Avro schema"


class LockUnread(DocumentError):
    """The lock of an app's packages does not exist, is not UTF-8 text, or locks nothing."""

    code = "SPEC-060"
    title = "cannot read the lock"


class LockLineRefused(DocumentError):
    """A line of a lock is no package with one version and its hashes, or no jar with its checksum."""

    code = "SPEC-061"
    title = "invalid line in a lock"


class PackageOfTheJobs(DocumentError):
    """A lock has a package or a jar of the jobs themselves, such as PySpark or pyarrow, in another version."""

    code = "SPEC-062"
    title = "package conflicts with one that every job has"


class LockedFileDiffers(DocumentError):
    """A wheel or jar beside a lock is missing, is not a wheel or a jar, or has another checksum than the lock."""

    code = "SPEC-063"
    title = "file does not match its lock"
