"""What a test of faults has counted, in the properties of pytest's report: ``./scripts/chaos`` shows them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class Ledger:
    """The counts of one test.

    Args:
        properties: pytest's ``user_properties`` of the test. Its ``record_property`` warns of a report's schema that has none.
    """

    def __init__(self, properties: list[tuple[str, object]]) -> None:
        self._properties = properties

    def times(self, number: int) -> None:
        """So many faults were injected."""
        self._record("times", number)

    def compared(self, expected: Iterable[str], seen: Counter[str]) -> None:
        """Rows that must be there, each once, and how often each was seen."""
        wanted = set(expected)
        self._record("rows", len(wanted))
        self._record("lost", len(wanted - seen.keys()))
        self._record("doubled", sum(count - 1 for count in seen.values()))

    def recovered(self, seconds: float, planned_s: float | None = None) -> None:
        """The time from a fault, or its end, to the next commit, and what the plan says of it."""
        self._record("recovered_s", round(seconds, 1))
        if planned_s is not None:
            self._record("planned_s", round(planned_s, 1))

    def _record(self, name: str, value: object) -> None:
        self._properties.append((name, value))

    @contextmanager
    def recovering(self) -> Iterator[None]:
        """A fault is over, and within the context the job goes on."""
        began_s = time.monotonic()
        yield
        self.times(1)
        self.recovered(time.monotonic() - began_s)
