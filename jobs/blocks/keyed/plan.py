"""What the tasks of a keyed function need to know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pyspark.sql.types import StructType

from penstock.jobs.blocks.keyed.declared import TypedState
from penstock.jobs.blocks.keyed.function import KeyedFunction
from penstock.jobs.stream.streams import TIME

Time = Literal["event", "processing"]
Order = Literal["arrival", "time"]
# Besides the output's fields: the row's time, and what is written of a side-output row.
MOMENT, SIDE_ROW = "_moment_ms", "_aside"
# Columns that order rows with the same time.
ORDER_PREFIX = "_order_"
# State of rows that wait for their time.
HELD = "penstock_held"


@dataclass(frozen=True)
class Plan:
    """Everything that the tasks need to know.

    Args:
        keys: key columns.
        rows: the fields of a row, including keys, the time in microseconds since the epoch, and ordering columns.
        output: the fields of the output.
        function: the function.
        states: its state.
        time: what its timers and its state's time to live are based on.
        order: in which its rows are processed.
        ttl_ms: how long state lives after its last write.
    """

    keys: tuple[str, ...]
    rows: StructType
    output: StructType
    function: KeyedFunction
    states: Mapping[str, TypedState]
    time: Time | None
    order: Order
    ttl_ms: int | None

    @property
    def kept(self) -> dict[str, TypedState]:
        """The function's state, and the rows that are held back."""
        held = {HELD: TypedState("list", self.rows, self.rows)} if self.order == "time" else {}
        return {**self.states, **held}

    @property
    def fields(self) -> list[str]:
        """The fields that the function sees."""
        return [name for name in self.rows.names if name != TIME and not name.startswith(ORDER_PREFIX)]

    @property
    def waits(self) -> bool:
        """Whether a key can wait for a time: for a timer, for held-back rows or for state that expires."""
        return self.time is not None and (self.order == "time" or self.ttl_ms is not None or self.function.sets_timers())
