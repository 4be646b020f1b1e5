from __future__ import annotations

import pytest

from benchmarks.streaming.round_result import TOTAL, MicroBatch, MicroBatches, Result, failed, medians, phases_ms, reason
from penstock.scripts.errors import DriverDied

FLINK_LOG = """\
Traceback (most recent call last):
  File "run_sql.py", line 38, in <module>
py4j.protocol.Py4JJavaError: An error occurred while calling o8.executeSql.
: org.apache.flink.table.api.SqlParserException: SQL parse failed.
\tat org.apache.flink.table.planner.delegation.ParserImpl.parse(ParserImpl.java:102)
Caused by: org.apache.calcite.sql.parser.SqlParseException: Encountered "views" at line 1, column 68.
\t... 13 more
Caused by: org.apache.flink.sql.parser.impl.ParseException: Encountered "views".
Was expecting one of:
    "CONSTRAINT" ...

\t... 14 more
"""


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (RuntimeError(FLINK_LOG), 'org.apache.flink.sql.parser.impl.ParseException: Encountered "views".'),
        (RuntimeError("first\nlast\n\n"), "last"),
        (TimeoutError(), "TimeoutError"),
        (DriverDied(path="driver", given="code 1; the end of driver.log:\nWARN\nKeyError: 'out'"), "KeyError: 'out'"),
        (DriverDied(path="driver", given="code 1", need="a running driver"), "[RUN-014] the driver died: driver code 1 a running driver"),
        (RuntimeError("x" * 1_000), "x" * 300),
    ],
)
def test_a_failure_has_a_reason_of_one_line(error: Exception, expected: str) -> None:
    if isinstance(error, DriverDied):
        expected = expected.replace("the driver died", DriverDied.title)
    assert reason(error) == expected


def test_a_round_that_failed_says_why_and_has_no_figures() -> None:
    result = failed(900, RuntimeError("no broker"))
    assert result == Result(900, 0, 0, 0, 0, 0, ("failed: no broker",))
    assert result.events_per_cpu_s == 0


def test_a_duration_is_phases_or_only_the_total() -> None:
    assert phases_ms({TOTAL: 12, "addBatch": 10}) == {TOTAL: 12, "addBatch": 10}
    assert phases_ms(12) == {TOTAL: 12}


def test_medians_are_those_of_micro_batches_with_records() -> None:
    batches = [
        MicroBatch(100, {TOTAL: 300, "addBatch": 200, "latestOffset": 9}, 40),
        MicroBatch(0, {TOTAL: 1, "latestOffset": 1}, 5),
        MicroBatch(200, {TOTAL: 100, "addBatch": 60}, 10),
        MicroBatch(300, {TOTAL: 200, "addBatch": 100}, 12),
    ]
    # A phase that a micro-batch does not have took no time.
    assert medians(batches) == MicroBatches(3, 200, {TOTAL: 200, "addBatch": 100, "latestOffset": 0}, 12)
    assert medians([MicroBatch(0, {TOTAL: 1}, 5)]) is None
