"""Errors of tools on this machine (TOOL-...) and of running what lies outside of Penstock (RUN-...)."""

from __future__ import annotations

from sizing.errors import CheckFailed, DocumentError, RunFailed, ToolMissing


class CommandNotStarted(RunFailed):
    code = "RUN-001"
    title = "a command could not be started"


class PortInUse(RunFailed):
    code = "RUN-002"
    title = "the port is in use"


class EmulatorDied(RunFailed):
    code = "RUN-003"
    title = "the emulated AWS ended by itself"


class EmulatorNotReady(RunFailed):
    code = "RUN-004"
    title = "the emulated AWS did not start in time"


class ProviderNotFound(ToolMissing):
    code = "RUN-005"
    title = "Terraform can't get the AWS provider"


class SynthFailed(RunFailed):
    code = "RUN-006"
    title = "the stacks could not be synthesized"


class TerraformFailed(RunFailed):
    code = "RUN-007"
    title = "terraform failed"


class TerraformTimeout(RunFailed):
    code = "RUN-008"
    title = "terraform did not end in time"


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
class MissingTool(ToolMissing):
    code = "TOOL-001"
    title = "a tool is missing"


class UnfitTool(ToolMissing):
    code = "TOOL-002"
    title = "a tool has a version that does not fit"


class MuteTool(ToolMissing):
    code = "TOOL-003"
    title = "a tool does not say its version"


class PackagesNotInstalled(ToolMissing):
    code = "TOOL-010"
    title = "the Python packages could not be installed"


class JarsNotFetched(ToolMissing):
    code = "TOOL-011"
    title = "the jars could not be fetched"


class JarsDiffer(ToolMissing):
    code = "TOOL-012"
    title = "jars are not those of jars.sha256"


class CdktfNotInstalled(ToolMissing):
    code = "TOOL-013"
    title = "cdktf-cli could not be installed"


class FolderNotWritable(ToolMissing):
    code = "TOOL-014"
    title = "a folder is not writable"


class NotSetUp(ToolMissing):
    code = "TOOL-020"
    title = "the set-up has not been run here"


class WrongOption(DocumentError):
    code = "TOOL-021"
    title = "a wrong option"


class NotYet(DocumentError):
    code = "TOOL-022"
    title = "this version can't do that yet"


class WrongUsage(DocumentError):
    """The command was called with a verb or an option that it does not know, or without one that it needs."""

    code = "USE-001"
    title = "wrong usage"
