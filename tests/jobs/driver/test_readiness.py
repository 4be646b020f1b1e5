"""When a driver's pod is ready: the file that its readiness probe looks for."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from penstock.jobs.configuration.runtime import READY_FILE_VARIABLE
from penstock.jobs.driver.readiness import Readiness

# Of a wait that is not to end by it.
LONG_S = 600.0
LIMIT_S = 30.0


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = tmp_path / "ready"
    monkeypatch.setenv(READY_FILE_VARIABLE, str(found))
    return found


def appears(file: Path) -> bool:
    """Whether the file is there, now or soon: a thread makes it."""
    looks = threading.Event()
    for _ in range(int(LIMIT_S / 0.01)):
        if file.exists():
            return True
        looks.wait(0.01)
    return False


def _nothing(event: str, detail: Mapping[str, object]) -> None: ...


def test_a_driver_of_an_unchanged_job_is_ready_while_it_reads(file: Path) -> None:
    with Readiness(LONG_S).reported(1, changed=False):
        assert file.exists()
    assert not file.exists()


@pytest.mark.parametrize("event", ["committed", "idle"])
def test_one_of_a_changed_job_is_ready_once_each_query_has_done_what_there_was(file: Path, event: str) -> None:
    readiness, heard = Readiness(LONG_S), list[str]()
    emit = readiness.watching(lambda name, _: heard.append(name))
    with readiness.reported(2, changed=True):
        for query in ("one", "one"):
            emit(event, {"query": query})
        emit("batch", {"query": "two"})
        assert not file.exists()
        emit("committed", {"query": "two"})
        assert appears(file)
    assert not file.exists()
    assert heard == [event, event, "batch", "committed"]
    # Planned again after a rebalance, it need not show it again.
    with readiness.reported(2, changed=True):
        assert appears(file)


def test_a_query_that_has_committed_before_the_wait_begins_counts(file: Path) -> None:
    readiness = Readiness(LONG_S)
    readiness.watching(_nothing)("committed", {})
    with readiness.reported(1, changed=True):
        assert appears(file)


def test_one_that_fails_before_is_never_ready(file: Path) -> None:
    readiness = Readiness(LONG_S)
    with pytest.raises(ZeroDivisionError), readiness.reported(1, changed=True):
        raise ZeroDivisionError
    assert not file.exists()
    assert not [thread for thread in threading.enumerate() if thread.name == "penstock-readiness"]


def test_a_long_first_micro_batch_is_no_reason_to_roll_back(file: Path) -> None:
    with Readiness(0.0).reported(1, changed=True):
        assert appears(file)
    assert not file.exists()
