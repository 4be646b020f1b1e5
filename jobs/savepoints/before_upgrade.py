"""The savepoint that a driver takes before its job goes on as another generation, with ``upgradeMode: savepoint``.

The driver before has ended by then, and this one holds the job's lease: nothing is committed while it is taken. It is kept until somebody
deletes it, so another one of the same name is only ever kept or passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count

from penstock.jobs.savepoints.errors import NothingToSave, SavepointDamaged, SavepointMissing, SavepointNotTaken, SavepointOfNewerRelease
from penstock.jobs.savepoints.folder import SavepointFolder, Savepoints
from penstock.jobs.savepoints.manifest import Savepoint
from penstock.jobs.savepoints.taking import Taken, queries_of, take
from penstock.jobs.spec.job import UpgradeMode
from penstock.jobs.storage.checkpoint import Checkpoint
from penstock.jobs.storage.continuation import Continuation
from penstock.jobs.storage.s3 import shared_client
from penstock.sizing.errors import PenstockError


def savepoint_name(before: int | None) -> str:
    """What the savepoint is called.

    Args:
        before: number of the generation before; None of a job that has recorded none.
    """
    return f"upgrade-{before or 0}"


def is_due(mode: UpgradeMode, decided: Continuation) -> bool:
    """Whether a driver takes a savepoint first: it begins a generation with the checkpoint of the one before, and the mode asks for it."""
    return mode == "savepoint" and decided.begins and decided.start is None and decided.rewinds_to is None and not decided.anew


@dataclass(frozen=True)
class UpgradeSavepoint:
    """The savepoint before an upgrade.

    Args:
        checkpoint: that the job goes on with.
        savepoints: of the job.
        of: whose checkpoint it is.
        emit: reports an event.
    """

    checkpoint: Checkpoint
    savepoints: Savepoints
    of: Taken
    emit: Callable[[str, Mapping[str, object]], None]

    def taken(self) -> Savepoint | None:
        """Takes it, unless a driver that failed after it has.

        Returns:
            The savepoint; None of a job that has committed nothing.

        Raises:
            SavepointNotTaken: JOB-108.
        """
        name = savepoint_name(self.of.generation.number if self.of.generation is not None else None)
        try:
            folder, saved = self._place(name)
            if saved is None:
                self.emit("saving", {"savepoint": folder.uri})
                saved = take(self.checkpoint, folder, self.of, shared_client(), pause_s=0)
        except NothingToSave:
            return None
        except PenstockError as error:
            first = error.errors[0]
            raise SavepointNotTaken(
                path=f"{self.savepoints.uri}/{name}",
                given=f"{first.code} ({first.path}): {first.given}",
                need="a savepoint before the upgrade, as upgradeMode: savepoint says; nothing of the job is touched",
                fix=f"{first.fix}; or upgrade without one: upgradeMode: last-state",
            ) from error
        amount = {"objects": len(saved.objects), "bytes": saved.bytes}
        self.emit("saved", {"savepoint": folder.uri, **amount, "batches": _batches(saved)})
        return saved

    def _place(self, name: str) -> tuple[SavepointFolder, Savepoint | None]:
        """The first folder of that name, or of that name with a number, that is free or has this very savepoint."""
        for number in count(1):
            folder = self.savepoints.of(name if number == 1 else f"{name}-{number}")
            try:
                saved = folder.manifest()
                if self._is_this(saved):
                    folder.verify(saved)
                    return folder, saved
            except SavepointMissing:
                return folder, None
            except (SavepointDamaged, SavepointOfNewerRelease):
                # Whoever has made it may still want what is left of it.
                continue
        raise AssertionError("the numbers have no end")

    def _is_this(self, saved: Savepoint) -> bool:
        if saved.checkpoint != self.checkpoint.uri:
            return False
        return _batches(saved) == {query: one.batch for query, one in queries_of(self.checkpoint, self.of).items()}


def _batches(saved: Savepoint) -> Mapping[str, int]:
    return {query: one.batch for query, one in saved.queries.items()}
