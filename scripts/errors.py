"""Errors of tools on this machine (TOOL-...) and of external programs (RUN-...)."""

from __future__ import annotations

from penstock.sizing.errors import CheckFailed, DocumentError, RunFailed, ToolMissing


class CommandNotStarted(RunFailed):
    """The command does not exist or is not executable."""

    code = "RUN-001"
    title = "cannot start a command"


class PortInUse(RunFailed):
    """Another process is listening on the requested port."""

    code = "RUN-002"
    title = "port already in use"


class EmulatorDied(RunFailed):
    """The emulated AWS exited before it was stopped; the end of its log is shown."""

    code = "RUN-003"
    title = "emulated AWS terminated unexpectedly"


class EmulatorNotReady(RunFailed):
    """The emulated AWS is running but does not accept connections."""

    code = "RUN-004"
    title = "timed out waiting for the emulated AWS"


class ProviderNotFound(ToolMissing):
    """No local directory contains the AWS provider, and the Terraform Registry does not provide it."""

    code = "RUN-005"
    title = "Terraform cannot install the AWS provider"


class SynthFailed(RunFailed):
    """cdktf could not synthesize the environment's stacks."""

    code = "RUN-006"
    title = "synthesis failed"


class TerraformFailed(RunFailed):
    """A Terraform command failed; its message names the resource."""

    code = "RUN-007"
    title = "terraform failed"


class TerraformTimeout(RunFailed):
    """A Terraform command was stopped at its time limit; its state is saved."""

    code = "RUN-008"
    title = "terraform timed out"


class TerraformStopped(RunFailed):
    """Terraform was interrupted and shut down gracefully."""

    code = "RUN-009"
    title = "terraform interrupted"


class BrokerDied(RunFailed):
    """The local Kafka broker exited before it was stopped."""

    code = "RUN-010"
    title = "Kafka broker terminated unexpectedly"


class BrokerNotReady(RunFailed):
    """The local Kafka broker is running but does not respond."""

    code = "RUN-011"
    title = "timed out waiting for the Kafka broker"


class TopicsNotCreated(RunFailed):
    """The broker rejected the creation of a topic."""

    code = "RUN-012"
    title = "cannot create topic"


class InputFailed(RunFailed):
    """The spec's local input could not be read or produced."""

    code = "RUN-013"
    title = "cannot load the local input"


class DriverDied(RunFailed):
    """The driver process exited without reporting an error."""

    code = "RUN-014"
    title = "driver terminated unexpectedly"


class RunTooLong(RunFailed):
    """The job did not process its input within the time limit."""

    code = "RUN-015"
    title = "timed out waiting for the job to process its input"


class WrongResult(CheckFailed):
    """The output differs from the expected result."""

    code = "RUN-016"
    title = "unexpected result"


class ExpectationFailed(RunFailed):
    """The spec's expectation function failed."""

    code = "RUN-017"
    title = "cannot compute the expected result"


class StacksDiffer(CheckFailed):
    """A second plan, right after the apply, still shows changes."""

    code = "RUN-018"
    title = "stack differs from what was applied"


class SparkClusterDied(RunFailed):
    """The local Spark master or one of its workers exited before it was stopped; the standalone master does not replace a worker."""

    code = "RUN-040"
    title = "Spark cluster terminated unexpectedly"


class SparkClusterNotReady(RunFailed):
    """The local Spark master, a worker or the executors of a job did not register within the time limit, or ended before that."""

    code = "RUN-041"
    title = "the Spark cluster is not ready"


class TooManyExecutors(DocumentError):
    """This machine does not have the cores or the memory for the requested number of executors."""

    code = "RUN-042"
    title = "too many executors for this machine"


# Some of these are raised by the shell script `scripts/setup`, which must work before Python is installed; a test compares the two.
class MissingTool(ToolMissing):
    """A tool required by the setup or by a run is not installed on this machine."""

    code = "TOOL-001"
    title = "missing tool"


class UnfitTool(ToolMissing):
    """A tool is too old, or Python is too new."""

    code = "TOOL-002"
    title = "unsupported tool version"


class MuteTool(ToolMissing):
    """A tool hangs, fails or prints something unexpected when asked for its version."""

    code = "TOOL-003"
    title = "cannot determine tool version"


class PackagesNotInstalled(ToolMissing):
    """The packages of the lock file could not be installed."""

    code = "TOOL-010"
    title = "cannot install the Python packages"


class JarsNotFetched(ToolMissing):
    """Maven could not download the artifacts of the POM."""

    code = "TOOL-011"
    title = "cannot download the jars"


class JarsDiffer(ToolMissing):
    """A downloaded jar has the wrong checksum, is missing, or is not listed."""

    code = "TOOL-012"
    title = "jars do not match jars.sha256"


class CdktfNotInstalled(ToolMissing):
    """npm could not install the packages of the lock file, or cdktf does not start."""

    code = "TOOL-013"
    title = "cannot install cdktf-cli"


class FolderNotWritable(ToolMissing):
    """The checkout or the directory for temporary files is not writable."""

    code = "TOOL-014"
    title = "directory not writable"


class CacheNotWritable(ToolMissing):
    """The cache of jars and cdktf-cli cannot be created, read or written, or its disk is full."""

    code = "TOOL-015"
    title = "cache not writable"


class CacheOfAnotherVersion(ToolMissing):
    """The cache was written by a version of Penstock that uses another layout."""

    code = "TOOL-016"
    title = "cache belongs to another version"


class JvmClassesNotBuilt(ToolMissing):
    """Maven could not download what the classes are compiled against, or could not compile them."""

    code = "TOOL-017"
    title = "cannot build the classes for Spark's JVM"


class SparkNotStarted(ToolMissing):
    """Spark's JVM exits while it starts, so no app can be checked. Often Java is missing, or too old."""

    code = "TOOL-050"
    title = "Spark does not start on this machine"


class NotSetUp(ToolMissing):
    """The jars or cdktf-cli of this version are not in the cache."""

    code = "TOOL-020"
    title = "setup incomplete"


class ToolNotInstalled(ToolMissing):
    """The packages of a tool with its own environment could not be installed."""

    code = "TOOL-024"
    title = "cannot create a tool's environment"


class AppPackagesNotInstalled(ToolMissing):
    """A package of an app's lock could not be downloaded, has another checksum, or has no wheel for this Python and platform."""

    code = "TOOL-040"
    title = "cannot install an app's packages"


class AppJarsNotFetched(ToolMissing):
    """Maven could not find a jar of an app's lock, or the jar has another checksum."""

    code = "TOOL-041"
    title = "cannot fetch an app's jars"


class WrongOption(DocumentError):
    """A script was called with an unknown option or an invalid value."""

    code = "TOOL-021"
    title = "invalid option"


class WrongUsage(DocumentError):
    """The command was called with an unknown subcommand or option, or without a required one."""

    code = "USE-001"
    title = "invalid usage"


class PackageMissing(ToolMissing):
    """A Python package required by a command is not installed."""

    code = "TOOL-023"
    title = "missing Python package"


def package_missing(command: str, error: ModuleNotFoundError, extra: str) -> PackageMissing:
    """The error for a command whose packages are not installed.

    Args:
        command: as the user calls it.
        error: of the import.
        extra: the distribution's extra that has them; empty for the distribution itself.
    """
    fix = f'pip install "penstock-kit{f"[{extra}]" if extra else ""}"; in a checkout ./scripts/setup, and .venv/bin/penstock'
    return PackageMissing(path=command, given=error.name or "", need="a missing package", fix=fix)


class AwsRefused(RunFailed):
    """AWS rejected a request: missing permissions, expired credentials, or a region not enabled for the account."""

    code = "RUN-020"
    title = "AWS request denied"


class AwsNotReached(RunFailed):
    """AWS did not respond, or its response could not be parsed."""

    code = "RUN-021"
    title = "AWS unreachable"


class SnapshotNotWritten(RunFailed):
    """The catalog snapshot file could not be written."""

    code = "RUN-022"
    title = "cannot write the snapshot"


class CredentialsMissing(ToolMissing):
    """No AWS credentials are configured on this machine, or they are incomplete."""

    code = "TOOL-030"
    title = "AWS credentials not found"


class SpecNotWritten(DocumentError):
    """The output file of a job spec cannot be written."""

    code = "USE-030"
    title = "cannot write the spec"


class UnreadableScenario(DocumentError):
    """A file for a placement does not exist, is not valid JSON, or contains neither a scenario nor Kubernetes objects."""

    code = "USE-010"
    title = "cannot read the scenario"


class ReportNotWritten(DocumentError):
    """The output file of a report cannot be written."""

    code = "USE-040"
    title = "cannot write the report"


class NoPage(DocumentError):
    """The path given for the report does not end in .html."""

    code = "USE-041"
    title = "report must be an HTML file"


class UnknownRule(DocumentError):
    """A lint rule to be skipped does not exist."""

    code = "USE-020"
    title = "unknown rule"


class BadDate(DocumentError):
    """The date does not exist or is not in the format YYYY-MM-DD."""

    code = "USE-021"
    title = "invalid date"


class NothingToLint(DocumentError):
    """Lint was called without any files."""

    code = "USE-022"
    title = "nothing to lint"
