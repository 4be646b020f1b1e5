"""Errors of tools on this machine (TOOL-...) and of running what lies outside of Penstock (RUN-...)."""

from __future__ import annotations

from penstock.sizing.errors import CheckFailed, DocumentError, RunFailed, ToolMissing


class CommandNotStarted(RunFailed):
    """A command could not be executed: it is missing, or may not be."""

    code = "RUN-001"
    title = "a command could not be started"


class PortInUse(RunFailed):
    """Another process listens on the port that was asked for."""

    code = "RUN-002"
    title = "the port is in use"


class EmulatorDied(RunFailed):
    """The emulated AWS ended before it was told to; the end of its log is shown."""

    code = "RUN-003"
    title = "the emulated AWS ended by itself"


class EmulatorNotReady(RunFailed):
    """The emulated AWS runs, but does not listen."""

    code = "RUN-004"
    title = "the emulated AWS did not start in time"


class ProviderNotFound(ToolMissing):
    """No folder of this machine holds the AWS provider, and Terraform's registry does not give it."""

    code = "RUN-005"
    title = "Terraform can't get the AWS provider"


class SynthFailed(RunFailed):
    """cdktf could not make the stacks of the environment."""

    code = "RUN-006"
    title = "the stacks could not be synthesized"


class TerraformFailed(RunFailed):
    """Terraform said what is wrong, and with which resource."""

    code = "RUN-007"
    title = "terraform failed"


class TerraformTimeout(RunFailed):
    """A call of Terraform was stopped at its time limit; its state is written."""

    code = "RUN-008"
    title = "terraform did not end in time"


class TerraformStopped(RunFailed):
    """Terraform was told to stop before its end, and did so in order."""

    code = "RUN-009"
    title = "terraform was stopped"


class BrokerDied(RunFailed):
    """The local Kafka broker ended before it was told to."""

    code = "RUN-010"
    title = "the Kafka broker ended by itself"


class BrokerNotReady(RunFailed):
    """The local Kafka broker runs, but does not answer."""

    code = "RUN-011"
    title = "the Kafka broker did not start in time"


class TopicsNotCreated(RunFailed):
    """The broker refused to create a topic."""

    code = "RUN-012"
    title = "a topic could not be created"


class InputFailed(RunFailed):
    """The spec's local input could not be read or fed."""

    code = "RUN-013"
    title = "the local input could not be fed"


class DriverDied(RunFailed):
    """The driver's process ended without saying why."""

    code = "RUN-014"
    title = "the driver ended by itself"


class RunTooLong(RunFailed):
    """The job has not processed its input within the limit."""

    code = "RUN-015"
    title = "the job did not process its input in time"


class WrongResult(CheckFailed):
    """What came out is not what the expectation says."""

    code = "RUN-016"
    title = "the result is not as expected"


class ExpectationFailed(RunFailed):
    """The spec's expectation could not be computed."""

    code = "RUN-017"
    title = "the expectation could not be computed"


# TOOL-001 to TOOL-019 come from the shell script `scripts/setup`, which must work before there is a Python; a test holds the two together.
class StacksDiffer(CheckFailed):
    """Stacks that have just been applied would be changed by a second apply."""

    code = "RUN-018"
    title = "a stack is not what was applied"


class MissingTool(ToolMissing):
    """A tool that the set-up or a run needs is not on this machine."""

    code = "TOOL-001"
    title = "a tool is missing"


class UnfitTool(ToolMissing):
    """A tool is too old, or a Python too new."""

    code = "TOOL-002"
    title = "a tool has a version that does not fit"


class MuteTool(ToolMissing):
    """A tool hangs, fails or prints something else when it is asked for its version."""

    code = "TOOL-003"
    title = "a tool does not say its version"


class PackagesNotInstalled(ToolMissing):
    """pip did not install what the lock file names."""

    code = "TOOL-010"
    title = "the Python packages could not be installed"


class JarsNotFetched(ToolMissing):
    """Maven did not fetch what the POM names."""

    code = "TOOL-011"
    title = "the jars could not be fetched"


class JarsDiffer(ToolMissing):
    """Maven fetched a jar whose checksum is another, one too many or one too few."""

    code = "TOOL-012"
    title = "jars are not those of jars.sha256"


class CdktfNotInstalled(ToolMissing):
    """npm did not install what the lock file names, or cdktf does not start."""

    code = "TOOL-013"
    title = "cdktf-cli could not be installed"


class FolderNotWritable(ToolMissing):
    """The checkout or the folder for temporary files can't be written to."""

    code = "TOOL-014"
    title = "a folder is not writable"


class NotSetUp(ToolMissing):
    """A jar, cdktf-cli or the state folder is not where the set-up puts it."""

    code = "TOOL-020"
    title = "the set-up has not been run here"


class ToolNotInstalled(ToolMissing):
    """The packages of a tool that has an environment of its own could not be installed."""

    code = "TOOL-024"
    title = "a tool's own environment could not be made"


class WrongOption(DocumentError):
    """A script of the checkout does not know an option or its value."""

    code = "TOOL-021"
    title = "a wrong option"


class WrongUsage(DocumentError):
    """The command was called with a verb or an option that it does not know, or without one that it needs."""

    code = "USE-001"
    title = "wrong usage"


class PackageMissing(ToolMissing):
    """A Python package that a verb needs is not installed."""

    code = "TOOL-023"
    title = "a Python package is missing"


class AwsRefused(RunFailed):
    """AWS answered a question with a refusal: rights, an expired sign-in, or a region that the account has not enabled."""

    code = "RUN-020"
    title = "AWS refused to answer"


class AwsNotReached(RunFailed):
    """AWS did not answer, or not in a form that its own library reads."""

    code = "RUN-021"
    title = "AWS was not reached"


class SnapshotNotWritten(RunFailed):
    """The file of a catalog snapshot could not be written."""

    code = "RUN-022"
    title = "the snapshot could not be written"


class CredentialsMissing(ToolMissing):
    """This machine has no credentials for AWS, or only a part of them."""

    code = "TOOL-030"
    title = "no credentials for AWS"


class SpecNotWritten(DocumentError):
    """The file that a job spec shall be written to can't be written."""

    code = "USE-030"
    title = "the spec could not be written"


class UnreadableScenario(DocumentError):
    """A scenario's file is missing, is no JSON, or holds no mapping."""

    code = "USE-010"
    title = "the scenario's file can't be read"


class ReportNotWritten(DocumentError):
    """The file of a plan's page can't be written."""

    code = "USE-040"
    title = "the report could not be written"


class NoPage(DocumentError):
    """The path given for a plan's page is not that of an HTML file."""

    code = "USE-041"
    title = "the report is an HTML page"


class UnknownRule(DocumentError):
    """A rule of lint is to be left out that does not exist."""

    code = "USE-020"
    title = "there is no such rule"


class BadDate(DocumentError):
    """A date that is no day of the calendar, or is written in another way."""

    code = "USE-021"
    title = "not a date"


class NothingToLint(DocumentError):
    """Lint was called without anything to look at."""

    code = "USE-022"
    title = "nothing to lint"
