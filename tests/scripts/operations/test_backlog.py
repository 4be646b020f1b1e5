from __future__ import annotations

from penstock.jobs.storage.checkpoint import BatchRecord, Position
from penstock.scripts.operations.backlog import backlog_of


def _record(batch: int, time_s: float, **partitions: tuple[int, int | None]) -> BatchRecord:
    positions = {"clicks": {int(name[1:]): Position(*one) for name, one in partitions.items()}}
    return BatchRecord(batch=batch, time_ms=int(time_s * 1000), positions=positions)


def test_a_backlog_is_read_at_the_rate_beyond_that_of_what_arrives() -> None:
    # 60 records a second are read and 20 arrive: 400 records are gone in 10 s, and are 20 s of arrivals.
    backlog = backlog_of(_record(12, 110, p0=(500, 600), p1=(100, 400)), _record(2, 100, p0=(0, 500), p1=(0, 300)))
    assert (backlog.records, backlog.read_per_s, backlog.arrived_per_s) == (400, 60, 20)
    assert (backlog.gone_in_s, backlog.seconds, backlog.micro_batches) == (10, 20, 10)
    assert [(one.partition, one.next, one.latest, one.records) for one in backlog.partitions] == [(0, 500, 600, 100), (1, 100, 400, 300)]


def test_a_backlog_that_grows_is_never_gone() -> None:
    backlog = backlog_of(_record(3, 10, p0=(10, 100)), _record(1, 0, p0=(0, 50)))
    assert (backlog.records, backlog.read_per_s, backlog.arrived_per_s, backlog.gone_in_s) == (90, 1, 5, None)


def test_without_a_backlog_there_is_nothing_to_wait_for() -> None:
    backlog = backlog_of(_record(3, 10, p0=(10, 10)), _record(1, 0, p0=(0, 0)))
    assert (backlog.records, backlog.seconds, backlog.gone_in_s) == (0, 0, 0)


def test_what_is_unknown_is_not_made_up() -> None:
    first = backlog_of(_record(0, 10, p0=(10, 30)), None)
    assert (first.records, first.read_per_s, first.arrived_per_s, first.gone_in_s, first.micro_batches) == (20, None, None, None, 0)
    # A replayed micro-batch does not know where one of its topics ends.
    replayed = backlog_of(_record(3, 10, p0=(10, None), p1=(5, 7)), _record(1, 0, p0=(0, 5), p1=(0, 5)))
    assert (replayed.records, replayed.read_per_s, replayed.arrived_per_s, replayed.gone_in_s) == (None, 1.5, None, None)
    # At the same time, as after a clock that was set back.
    assert backlog_of(_record(3, 10, p0=(10, 20)), _record(1, 10, p0=(0, 5))).read_per_s is None


def test_a_partition_that_has_come_meanwhile_counts_as_lag_and_not_as_rate() -> None:
    backlog = backlog_of(_record(3, 10, p0=(10, 10), p1=(900, 1000)), _record(1, 0, p0=(0, 0)))
    assert (backlog.records, backlog.read_per_s) == (100, 1)


def test_a_source_other_than_kafka_has_a_rate_and_no_lag() -> None:
    record, earlier = (BatchRecord(batch=n, time_ms=n * 1000, total_rows_in={"files": n * 50}) for n in (9, 4))
    backlog = backlog_of(record, earlier)
    assert (backlog.records, backlog.read_per_s, backlog.partitions) == (None, 50, ())
