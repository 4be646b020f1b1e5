"""CPU time of a keyed function with ``order="time"`` over the rows that a key holds back: ``python -m benchmarks.ordered_rows``.

In Spark's own tester of stateful processors, without a session: what is measured is Penstock's part. Each row has a time of its own.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql import Row
from pyspark.sql.types import IntegerType

from penstock.jobs.blocks.keyed.function import Key, KeyedFunction
from tests.jobs.blocks.keyed.running import Ran

_ROWS = (250, 500, 1_000, 2_000, 4_000)


class Unchanged(KeyedFunction):
    """Emits each row."""

    def on_row(self, row: Row, key: Key) -> Iterator[Mapping[str, Any]]:
        """The row."""
        yield {"n": row.n}


def main() -> None:
    """Prints seconds by number of rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    _run(_ROWS[0])
    print(f"{'rows':>6} {'min, s':>8} {'median':>8} {'max':>8} {'us a row':>9}")
    for rows in _ROWS:
        some = [_run(rows) for _ in range(rounds)]
        print(
            f"{rows:>6,} {min(some):>8.2f} {statistics.median(some):>8.2f} {max(some):>8.2f} {statistics.median(some) / rows * 1e6:>9,.0f}"
        )


def _run(rows: int) -> float:
    number = {"n": IntegerType()}
    held = Ran(Unchanged(), number, number, {}, order="time").rows(*[(moment, {"n": moment}) for moment in range(1, rows + 1)])
    began_s = time.process_time()
    held.watermark(rows + 1)
    taken_s = time.process_time() - began_s
    assert len(held.out) == rows
    return taken_s


if __name__ == "__main__":
    main()
