"""The base classes of Penstock's errors, and the errors of sizing.

An error is a class with a stable code, so that programs can distinguish errors and users can look them up. It has a title, a place, the
given value, the requirement and a fix::

    error[SIZ-001]: executor has no task slot
      at   jobs/specs/clicks.yaml:14  spec.executor.slots = 1
      need spark.executor.cores >= spark.task.cpus = 2
      fix  slots: 2, or take spark.task.cpus out of sparkConf

The tree (a class's exit code is the process's)::

    PenstockError
    |-- CheckFailed        1   a check failed
    |-- DocumentError      2   an invalid document or invalid arguments
    |-- Infeasible         3   no plan meets the targets
    |-- ToolMissing        4   a tool, file or credential is missing on this machine
    |-- RunFailed          5   a run or an external system failed
    `-- Faults                 several of these, reported together

Every package that raises has an ``errors`` module with its own codes; ``docs/errors.md`` lists them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict


class Place(BaseModel):
    """A position in a document.

    Args:
        file: path of the document as the user gave it.
        line: counted from 1; None for the whole file.
        column: counted from 1.
    """

    model_config = ConfigDict(frozen=True)

    file: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"


class PenstockError(Exception):
    """One fault, in the user's terms.

    Args:
        path: the field as a dotted path in the document (``spec.executor.memory``), or the name of the faulty item.
        given: the value as the user wrote it.
        need: the allowed or required value, with the given value where that helps.
        fix: how to fix it.
        at: file and line, if known.
    """

    code: ClassVar[str]
    title: ClassVar[str]
    exit_code: ClassVar[int]

    def __init__(self, *, path: str = "", given: str = "", need: str = "", fix: str = "", at: Place | None = None) -> None:
        super().__init__(f"[{self.code}] {self.title}: {path} {given} {need}".strip())
        self.path = path
        self.given = given
        self.need = need
        self.fix = fix
        self.at = at

    @property
    def errors(self) -> tuple[PenstockError, ...]:
        """The errors that this error consists of: itself, or all of them for `Faults`."""
        return (self,)

    def render(self) -> str:
        """The error as text: a headline and up to three lines below it."""
        what = f"{self.path} = {self.given}" if self.path and self.given else self.path or self.given
        where = "  ".join(part for part in (str(self.at) if self.at else "", what) if part)
        rows = (("at", where), ("need", self.need), ("fix", self.fix))
        body = [f"  {label:<4} {text}" for label, text in rows if text]
        return "\n".join([f"error[{self.code}]: {self.title}", *body])

    def as_json(self) -> dict[str, str | int | None]:
        """The error as a JSON object, with the keys of the command's ``-o json``."""
        return {
            "code": self.code,
            "title": self.title,
            "file": self.at.file if self.at else None,
            "line": self.at.line if self.at else None,
            "column": self.at.column if self.at else None,
            "path": self.path,
            "given": self.given,
            "need": self.need,
            "fix": self.fix,
        }


class CheckFailed(PenstockError):
    """A check completed and reported a failure."""

    exit_code = 1


class DocumentError(PenstockError):
    """An invalid document or invalid arguments."""

    exit_code = 2


class Infeasible(PenstockError):
    """No plan meets the targets."""

    exit_code = 3


class ToolMissing(PenstockError):
    """A prerequisite that the user installs or provides is missing."""

    exit_code = 4


class RunFailed(PenstockError):
    """The run itself, or a system outside of Penstock, failed."""

    exit_code = 5


class Faults(PenstockError):
    """Several faults reported together, in the order of the document; the most severe exit code wins, an invalid document first."""

    code = "FAULTS"
    title = "multiple errors"
    exit_code = 2

    def __init__(self, errors: Iterable[PenstockError]) -> None:
        self._errors = tuple(errors)
        super().__init__(need="; ".join(str(error) for error in self._errors))

    @property
    def errors(self) -> tuple[PenstockError, ...]:
        """All faults, in the order of the document."""
        return self._errors

    def render(self) -> str:
        """All faults as text, one below the other."""
        return "\n".join(error.render() for error in self._errors)


def raise_all(errors: Iterable[PenstockError]) -> None:
    """Raises the collected errors: nothing, a single error, or all of them together.

    Raises:
        PenstockError: the only fault.
        Faults: two faults or more.
    """
    raised = tuple(errors)
    if len(raised) == 1:
        raise raised[0]
    if raised:
        raise Faults(raised)


class NoTaskSlot(DocumentError):
    """An executor has fewer cores than a single task requires, so no task could be scheduled."""

    code = "SIZ-001"
    title = "executor has no task slot"


class BadSparkSetting(DocumentError):
    """Spark would reject a value in sparkConf."""

    code = "SIZ-002"
    title = "invalid Spark setting"


class SettingContradicts(DocumentError):
    """A Spark setting differs from a field of the spec, or from the plan derived from the spec."""

    code = "SIZ-003"
    title = "Spark setting conflicts with the spec"


class HeapTooSmall(Infeasible):
    """The pod's memory leaves less JVM heap than Spark's minimum."""

    code = "SIZ-004"
    title = "heap too small for Spark"


class PodNotMet(Infeasible):
    """With the given memory overhead factor, rounding makes it impossible to reach exactly the requested pod memory."""

    code = "SIZ-005"
    title = "no heap size yields this pod memory"


class LimitBelowRequest(DocumentError):
    """A pod's CPU limit is lower than its CPU request, which Kubernetes and Spark reject."""

    code = "SIZ-006"
    title = "CPU limit below request"


class PoolLimitBinds(Infeasible):
    """The limits of the NodePools do not leave enough capacity for all pods."""

    code = "SIZ-010"
    title = "NodePool limits exceeded"


class QuotaBinds(Infeasible):
    """The nodes need more vCPUs, or Kafka more brokers, than the account's quota."""

    code = "SIZ-011"
    title = "service quota exceeded"


class PodFitsNoNode(Infeasible):
    """A pod is larger than the allocatable capacity of every allowed instance type after its DaemonSets."""

    code = "SIZ-012"
    title = "pod does not fit any allowed instance type"


class NoPoolTakesPod(Infeasible):
    """A pod of any size would stay Pending: no NodePool has the labels it selects, or it does not tolerate their taints."""

    code = "SIZ-013"
    title = "no compatible NodePool"


class DriverOnSpot(Infeasible):
    """The driver would run on a spot node; an interruption restarts the query."""

    code = "SIZ-014"
    title = "driver would run on spot capacity"


class TooFewPartitions(Infeasible):
    """The topics have fewer partitions than the parallelism, so some read tasks would be idle."""

    code = "SIZ-015"
    title = "fewer partitions than parallelism"


class ExecutorsIdle(Infeasible):
    """No stage has enough tasks to occupy every executor."""

    code = "SIZ-016"
    title = "idle executors"


class NothingToLaunch(Infeasible):
    """Karpenter would create a NodeClaim for which no instance type is left to request from EC2."""

    code = "SIZ-017"
    title = "no instance type to launch"


class StorageFitsNoNode(Infeasible):
    """A pod needs more ephemeral storage than the root volume of a node has for pods."""

    code = "SIZ-018"
    title = "ephemeral storage does not fit the nodes' root volume"


class SpreadNotMet(Infeasible):
    """A job requires its executors to be spread over all zones of the environment, and they can't run in one of them."""

    code = "SIZ-019"
    title = "executors can't be spread as required"


class RootVolumeTooSlow(Infeasible):
    """The executors of a node write and read more per second than its root volume, or the node's bandwidth to EBS, sustains."""

    code = "SIZ-064"
    title = "root volume too slow for the executors"


Restored = TypeVar("Restored", bound=PenstockError)


def restored(document: Mapping[str, str | int | None]) -> PenstockError | None:
    """Restores an error that another process wrote as JSON.

    Args:
        document: the output of `PenstockError.as_json`.

    Returns:
        The error; None if no loaded class has its code.
    """
    kinds = {kind.code: kind for kind in _kinds(PenstockError) if hasattr(kind, "code")}
    kind = kinds.get(str(document["code"]))
    return None if kind is None else _of_json(kind, document)


def _kinds(base: type[PenstockError]) -> Iterator[type[PenstockError]]:
    for kind in base.__subclasses__():
        yield kind
        yield from _kinds(kind)


def _of_json(kind: type[Restored], document: Mapping[str, str | int | None]) -> Restored:
    file, line, column = (document.get(name) for name in ("file", "line", "column"))
    at = Place.model_validate({"file": file, "line": line, "column": column}) if file else None
    return kind(at=at, **{name: str(document.get(name) or "") for name in ("path", "given", "need", "fix")})
