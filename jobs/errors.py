"""Errors of job specs (SPEC-...), of running jobs (JOB-...), and of savepoints that are taken (DEP-...)."""

from __future__ import annotations

from penstock.sizing.errors import DocumentError, RunFailed, ToolMissing


class UnreadableDocument(DocumentError):
    """The file does not exist, is a directory, or is not UTF-8 text."""

    code = "SPEC-001"
    title = "cannot read the document"


class BrokenYaml(DocumentError):
    """The text is not valid YAML, or its root is not a mapping."""

    code = "SPEC-002"
    title = "invalid YAML"


class DuplicateKey(DocumentError):
    """A mapping defines the same key twice; YAML would silently keep the last value."""

    code = "SPEC-003"
    title = "duplicate key"


class UnknownField(DocumentError):
    """The document has no such field; often a typo."""

    code = "SPEC-004"
    title = "unknown field"


class MissingField(DocumentError):
    """A field without a default is not set."""

    code = "SPEC-005"
    title = "missing required field"


class BadValue(DocumentError):
    """The value has the wrong type or is out of range."""

    code = "SPEC-006"
    title = "invalid value"


class BadQuantity(DocumentError):
    """A memory size, CPU quantity or duration is not in a supported format."""

    code = "SPEC-007"
    title = "invalid quantity"


class Contradiction(DocumentError):
    """Two fields are each valid but cannot be combined."""

    code = "SPEC-008"
    title = "conflicting fields"


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


class DocumentTooLarge(DocumentError):
    """The document exceeds the maximum size, number of values or nesting depth."""

    code = "SPEC-011"
    title = "document too large"


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


class NotAFlinkDeployment(DocumentError):
    """The document's kind or apiVersion is not that of a FlinkDeployment, the only resource that can be converted to a spec."""

    code = "SPEC-020"
    title = "not a FlinkDeployment"


class FlinkSession(DocumentError):
    """The document describes a session cluster or a job of one; the size of the cluster says nothing about a single job."""

    code = "SPEC-021"
    title = "Flink session clusters cannot be converted"


class BrokersUnreachable(RunFailed):
    """No broker responds."""

    code = "JOB-001"
    title = "Kafka brokers unreachable"


class OperatorsDiffer(RunFailed):
    """The operators that keep state in the query are not those that the app or its spec declares, by which state is sized."""

    code = "JOB-011"
    title = "stateful operators differ from the declared ones"


class TopicNotFound(RunFailed):
    """A topic of the spec does not exist on the brokers."""

    code = "JOB-002"
    title = "topic not found"


class AppFailed(RunFailed):
    """The app's module cannot be imported, or its `build` raised an exception."""

    code = "JOB-003"
    title = "app failed before the query started"


class BadDeclaration(RunFailed):
    """The app uses something that its spec does not define, or omits a required declaration."""

    code = "JOB-004"
    title = "app does not match its spec"


class QueryFailed(RunFailed):
    """The streaming query terminated with an exception."""

    code = "JOB-005"
    title = "query failed"


class StagedPartGone(RunFailed):
    """A part file listed in a manifest is neither staged nor published."""

    code = "JOB-006"
    title = "staged part file lost"


class ReplayDiffers(RunFailed):
    """A micro-batch that is run again produces rows that differ from those of its first run."""

    code = "JOB-007"
    title = "replayed micro-batch produced different rows"


class CheckpointDamaged(RunFailed):
    """The checkpoint lacks its commits or the record of a committed micro-batch, or one of its objects is empty or corrupt."""

    code = "JOB-008"
    title = "corrupt checkpoint"


class BucketUnreachable(RunFailed):
    """A bucket does not exist, does not respond, or denies access."""

    code = "JOB-009"
    title = "bucket unavailable"


class NoKafkaCredentials(ToolMissing):
    """The brokers use IAM authentication, and AWS credentials are missing or cannot be loaded."""

    code = "JOB-010"
    title = "no AWS credentials for the Kafka brokers"


class KafkaCredentialsRefused(RunFailed):
    """The brokers reject user and password or the client's certificate, or their listener does not have the SASL mechanism."""

    code = "JOB-111"
    title = "Kafka brokers rejected the credentials"


class TopicAccessDenied(RunFailed):
    """The brokers don't let the job's client describe a topic of the spec: its role, or its ACLs, lack a right."""

    code = "JOB-125"
    title = "Kafka brokers denied access to a topic"


class TransactionsRefused(RunFailed):
    """The brokers do not allow an exactly-once sink to write transactions with its settings."""

    code = "JOB-060"
    title = "brokers rejected the sink's transactions"


class ClientPropertiesRefused(RunFailed):
    """The Kafka client of a sink does not take the values of its properties."""

    code = "JOB-110"
    title = "Kafka client rejected the sink's properties"


class MarksDisagree(RunFailed):
    """The brokers hold the marker of a micro-batch that this checkpoint has not written yet: a copy of it has advanced separately."""

    code = "JOB-061"
    title = "another run has written with this checkpoint's identity"


class NotRepeatable(RunFailed):
    """Rows of an exactly-once sink depend on a non-deterministic expression, so a replay of a micro-batch could produce different rows."""

    code = "JOB-062"
    title = "exactly-once sink requires deterministic rows"


class MarksExpired(RunFailed):
    """A micro-batch was interrupted so long ago that the brokers may no longer know which part of it they hold."""

    code = "JOB-063"
    title = "transaction markers may have expired"


class UnknownConnection(RunFailed):
    """The spec refers to a connection that the environment does not define."""

    code = "JOB-050"
    title = "connection not found in the environment"


class ConnectionOfAnotherKind(RunFailed):
    """The environment defines the connection with a URL of another type than the spec needs."""

    code = "JOB-051"
    title = "connection has the wrong type"


class SecretUnusable(RunFailed):
    """The secret of a connection or of the brokers cannot be read from AWS Secrets Manager, or does not contain credentials."""

    code = "JOB-052"
    title = "invalid secret"


class DatabaseUnreachable(RunFailed):
    """A database does not respond or rejects the connection. No data is lost: the micro-batch is not committed and runs again."""

    code = "JOB-053"
    title = "database unreachable"


class TableDoesNotFit(RunFailed):
    """A sink's table does not exist, lacks a column, or has no unique constraint on the key."""

    code = "JOB-054"
    title = "table does not match its sink"


class RowsRefused(RunFailed):
    """A database rejected rows because of their values. None of the task's rows are written."""

    code = "JOB-055"
    title = "database rejected rows"


class WebhookFailed(RunFailed):
    """An endpoint rejected a webhook request, or did not respond after all attempts."""

    code = "JOB-056"
    title = "webhook delivery failed"


class SinkFunctionFailed(RunFailed):
    """A sink's function is not defined in the app's module, or raised an exception."""

    code = "JOB-057"
    title = "sink function failed"


class QuarantineLimitReached(RunFailed):
    """More records of a micro-batch are malformed than the spec allows. Nothing of the micro-batch is written."""

    code = "JOB-070"
    title = "quarantine limit exceeded"


class LookupTableDoesNotFit(RunFailed):
    """A lookup's table does not exist, lacks a column, or has several rows for one key."""

    code = "JOB-071"
    title = "table does not match its lookup"


class LookupRefused(RunFailed):
    """A database rejected a lookup for good: missing privileges, or a value out of range for its type. A retry would not help."""

    code = "JOB-072"
    title = "database rejected a lookup"


class AvroSchemaUnread(DocumentError):
    """The Avro schema file does not exist beside the spec, or cannot be read."""

    code = "SPEC-030"
    title = "cannot read the Avro schema"


class OffsetGone(RunFailed):
    """A consumer group has committed an offset that its topic no longer or not yet has: records would be skipped or read twice."""

    code = "JOB-020"
    title = "committed offset out of range"


class NotCommitted(RunFailed):
    """A job is to start at the committed offsets of a consumer group that has none of a partition: it has never read it, or is gone."""

    code = "JOB-107"
    title = "no committed offset to start at"


class SocketHasNoPast(RunFailed):
    """A job with a socket source found a checkpoint; a socket cannot replay what its server has already sent."""

    code = "JOB-021"
    title = "a job with a socket source cannot resume from a checkpoint"


class BoundedRunOver(RunFailed):
    """The checkpoint is that of a bounded run whose input has ended: everything is closed, and later rows have no place in it."""

    code = "JOB-022"
    title = "the bounded run has ended"


class EndUnreachable(RunFailed):
    """A bounded run cannot go on to the ends that were decided when it began: a source, a topic or its last records are gone."""

    code = "JOB-023"
    title = "the end of a bounded run cannot be reached"


class SqlRefused(DocumentError):
    """A statement of an SQL app, or of the text of ``job.sql``, has a syntax error, is not supported, or cannot be built."""

    code = "SPEC-045"
    title = "invalid SQL"


class TableFileUnread(RunFailed):
    """A file that rows are joined with does not exist, cannot be read by the job, or is not in the declared format."""

    code = "JOB-073"
    title = "cannot read a table file"


class CheckpointHeld(RunFailed):
    """Another driver holds the job's lease and renews it, so this one does not start."""

    code = "JOB-080"
    title = "another driver runs on this checkpoint"


class LeaseLost(RunFailed):
    """Another driver has taken over the checkpoint, so this one stops. It can begin no other micro-batch."""

    code = "JOB-081"
    title = "another driver has taken over this checkpoint"


class ConditionalWriteFailed(RunFailed):
    """S3 did not answer a conditional write, or answered only with conflicts. Nothing is lost: the job resumes from its checkpoint."""

    code = "JOB-082"
    title = "S3 did not decide a conditional write"


class TaskWithoutContext(RunFailed):
    """A task did not receive its micro-batch's number, its checkpoint or the current watermark from the driver."""

    code = "JOB-084"
    title = "task without the context of its micro-batch"


class ConcurrentWriter(RunFailed):
    """Spark's logs in the checkpoint are repeatedly written by another driver, one that does not take the lease."""

    code = "JOB-083"
    title = "another driver writes to this checkpoint"


class StateNotRepeatable(RunFailed):
    """State on the heap is computed from a non-deterministic expression. Its files are named by version only, so a replay, or a second
    driver, would overwrite them with other content.
    """

    code = "JOB-085"
    title = "state on the heap requires deterministic rows"


class NoProgress(RunFailed):
    """A query showed no progress for `progressTimeout`: a task, an outside call or a source hangs. The job resumes from its checkpoint."""

    code = "JOB-090"
    title = "micro-batch hangs"


class DiskFull(RunFailed):
    """A disk that the job writes to is full: of a pod's volume, or of its node. Nothing is lost: the job resumes from its checkpoint."""

    code = "JOB-091"
    title = "no space left on a disk"


class JobStopped(RunFailed):
    """The job has failed in a way that comes again, or too often: it is not started again as it is. Nothing is lost."""

    code = "JOB-092"
    title = "job stopped after failures"


class RewindImpossible(RunFailed):
    """The topics no longer have all records since the time to rewind to, the time is yet to come, or the job reads something else too."""

    code = "JOB-093"
    title = "cannot rewind to this time"


class StateDiffers(RunFailed):
    """The state in the job's checkpoint is not what its operators keep: Spark would refuse it, or take one value for another."""

    code = "JOB-094"
    title = "the state does not fit the app"


class RecordsGone(RunFailed):
    """A topic no longer has the records that the job is to read next: they are older than its retention, or it was created anew."""

    code = "JOB-106"
    title = "unread records are gone"


class OffsetsNotThere(RunFailed):
    """The topics do not have the offsets at which a start from a savepoint is to read on, or it is not known of which sources they are."""

    code = "JOB-101"
    title = "cannot read on at these offsets"


class SourcesDiffer(RunFailed):
    """The offsets in the job's checkpoint are of other sources than its query reads, or of the same in another order."""

    code = "JOB-105"
    title = "the checkpoint has the offsets of other sources"


class SavepointMissing(RunFailed):
    """There is no savepoint of this name, or it is incomplete: it was interrupted, or is being taken or deleted."""

    code = "JOB-095"
    title = "no such savepoint"


class SavepointDamaged(RunFailed):
    """An object of a savepoint is missing or has other content than its manifest says, or the manifest can't be read."""

    code = "JOB-096"
    title = "savepoint damaged"


class SavepointOfNewerRelease(RunFailed):
    """A newer release of Penstock has made the savepoint, in a format that this one does not know."""

    code = "JOB-097"
    title = "savepoint of a newer release"


class SavepointOfAnotherJob(RunFailed):
    """The savepoint is of another job, and nobody has said that this job is to start from it."""

    code = "JOB-098"
    title = "savepoint of another job"


class SavepointNotTaken(RunFailed):
    """The savepoint that ``upgradeMode: savepoint`` asks for can't be taken, and so the job is not upgraded. Nothing of it is touched."""

    code = "JOB-108"
    title = "no savepoint before the upgrade"


class StateNotRepartitioned(RunFailed):
    """The state of a savepoint can't be repartitioned to the parallelism of the spec. Nothing of the job is touched."""

    code = "JOB-109"
    title = "state can't be repartitioned"


class StateNotRestored(RunFailed):
    """A savepoint has the state of a query that the app does not have. Starting without it loses that state."""

    code = "JOB-099"
    title = "the app lacks a query of the savepoint"


class SavepointNameTaken(DocumentError):
    """The job has another savepoint of this name."""

    code = "DEP-030"
    title = "savepoint exists"


class NothingToSave(DocumentError):
    """The job has committed no micro-batch yet, and so there is nothing that a savepoint could have."""

    code = "DEP-031"
    title = "nothing to save"


class CheckpointMoves(RunFailed):
    """The checkpoint does not have what a start from its last micro-batch needs, or the job deletes it faster than it is copied."""

    code = "DEP-032"
    title = "savepoint not complete"


class StateExpired(DocumentError):
    """The checkpoint does not keep the state of that time any more, or the job had committed nothing by then."""

    code = "DEP-034"
    title = "no state of that time"


class CheckpointMissing(RunFailed):
    """The job has run, and its checkpoint is gone. An empty one in its place would lose the state and begin anew without saying so."""

    code = "JOB-086"
    title = "the job's checkpoint is gone"


class UpgradeNotChecked(RunFailed):
    """The check before an upgrade has failed before it could decide. The job's driver of before runs on."""

    code = "JOB-100"
    title = "cannot check the upgrade"


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
