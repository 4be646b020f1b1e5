"""An external system for tests: it records each call in a file, and behaves according to a row's `user`."""

from __future__ import annotations

import asyncio
import fcntl
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from penstock.jobs.blocks.calls import CallRefused


@dataclass(frozen=True)
class Outside:
    """Returns the credit limit of a user; sent to Spark's workers."""

    notes: str

    async def __aenter__(self) -> Outside:
        note(self.notes, "opened")
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        note(self.notes, "closed")

    async def __call__(self, row: dict[str, Any], key: str) -> object:
        """Behavior that the user requests."""
        before = calls(self.notes).count(key)
        note(self.notes, key)
        match row["user"]:
            case "flaky" if before == 0:
                raise ConnectionError("reset\nby peer")
            case "down":
                raise ConnectionError("nobody answers")
            case "refused":
                raise CallRefused("no such user")
            case "slow":
                await asyncio.sleep(30)
            case "odd":
                return {"credit": "much"}
            case "nothing":
                return {}
        # Another answer at each call.
        return {"credit": row["n"] * 10, "asked": before + 1, "more": 1}


def plain(row: dict[str, Any], key: str) -> dict[str, Any]:
    """A function without await: the earlier a row, the longer it takes."""
    time.sleep(0.05 * (3 - row["n"]))
    return {"twice": 2 * row["n"], "key": key}


@dataclass(frozen=True)
class FailsOnce:
    """A step that fails its task after it has received rows, the first time."""

    notes: str

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        """The same rows."""
        for batch in batches:
            if batch.num_rows and not Path(self.notes).exists():
                note(self.notes, "failed")
                raise RuntimeError("a step after the calls")
            yield batch


def note(path: str, line: str) -> None:
    """Appends a line atomically."""
    with Path(path).open("a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(f"{line}\n")


def calls(path: str) -> list[str]:
    """The keys of all calls so far."""
    lines = Path(path).read_text(encoding="utf-8").splitlines() if Path(path).exists() else []
    return [line for line in lines if line not in ("opened", "closed")]
