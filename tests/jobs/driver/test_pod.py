from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from penstock.jobs.configuration.runtime import POD_NAME_VARIABLE, POD_UID_VARIABLE, READY_FILE_VARIABLE, TERMINATION_FILE_VARIABLE
from penstock.jobs.driver import pod
from penstock.jobs.driver.ending import Ending
from penstock.jobs.driver.errors import NoProgress, QueryFailed
from penstock.jobs.driver.pod import forget_ready, pod_conf, reported_ready, termination_message, this_driver
from penstock.jobs.driver.spark import OwnSpark


@pytest.fixture
def ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "reading"
    monkeypatch.setenv(READY_FILE_VARIABLE, str(file))
    return file


def test_a_driver_in_a_pod_tells_spark_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(POD_NAME_VARIABLE, "user-credit-driver-0")
    assert pod_conf() == {"spark.kubernetes.driver.pod.name": "user-credit-driver-0"}


def test_a_driver_in_a_pod_holds_its_lease_as_that_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(POD_NAME_VARIABLE, "user-credit-driver-0")
    monkeypatch.setenv(POD_UID_VARIABLE, "uid-1")
    assert (this_driver().pod, this_driver().pod_uid, str(this_driver())) == ("user-credit-driver-0", "uid-1", "pod user-credit-driver-0")
    for variable in (POD_NAME_VARIABLE, POD_UID_VARIABLE):
        monkeypatch.setenv(variable, "")
    assert (this_driver().pod, this_driver().pod_uid) == (None, None)
    assert str(this_driver()).startswith("process ")


def test_a_pod_knows_the_namespace_in_which_its_name_is_unique(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod, "SERVICE_ACCOUNT", tmp_path)
    monkeypatch.setenv(POD_NAME_VARIABLE, "user-credit-driver-0")
    assert this_driver().namespace is None
    (tmp_path / "namespace").write_text("job-user-credit")
    seen = []
    for authority in ("one cluster", "another"):
        (tmp_path / "ca.crt").write_text(authority)
        seen.append(this_driver().namespace or "")
    assert [one.partition("@")[0] for one in seen] == ["job-user-credit"] * 2
    assert seen[0] != seen[1]
    monkeypatch.delenv(POD_NAME_VARIABLE)
    assert this_driver().namespace is None


def test_outside_of_a_pod_nothing_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in (POD_NAME_VARIABLE, READY_FILE_VARIABLE):
        monkeypatch.delenv(variable, raising=False)
    assert pod_conf() == {}
    forget_ready()
    with reported_ready():
        pass


def test_a_driver_is_ready_while_its_query_reads(ready: Path) -> None:
    with reported_ready():
        assert ready.exists()
    assert not ready.exists()


def test_a_driver_whose_query_fails_is_not_ready_any_more(ready: Path) -> None:
    with pytest.raises(RuntimeError), reported_ready():
        raise RuntimeError
    assert not ready.exists()


def test_what_a_killed_driver_has_left_is_deleted(ready: Path) -> None:
    ready.touch()
    forget_ready()
    assert not ready.exists()
    forget_ready()


def test_the_last_failure_is_the_message_of_the_container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "termination-log"
    monkeypatch.setenv(TERMINATION_FILE_VARIABLE, str(file))
    fault = NoProgress(path="app", given="micro-batch 7", need="a task that ends", fix="see the stacks")
    code = Ending(lambda event, detail: None, OwnSpark()).failed(fault)
    # Outside of a pod there is no such file, and none is made.
    assert not file.exists()
    file.touch()
    assert (Ending(lambda event, detail: None, OwnSpark()).failed(fault), code) == (5, 5)
    lines = ["error[JOB-090]: micro-batch hangs", "  at   app = micro-batch 7", "  need a task that ends", "  fix  see the stacks"]
    assert file.read_text("utf-8").splitlines() == lines


def test_a_message_that_kubelet_would_cut_ends_between_two_characters() -> None:
    for padding in range(4):
        message = termination_message(QueryFailed(path="x" * padding, given="\u20ac" * 4000))
        assert 4090 <= len(message) <= 4096
        assert message.decode().endswith("\u20ac\n...")


def test_a_driver_that_can_not_leave_a_message_ends_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(TERMINATION_FILE_VARIABLE, str(tmp_path))
    assert Ending(lambda event, detail: None, OwnSpark()).failed(QueryFailed(path="app")) == 5
    assert "WARN no termination message" in capsys.readouterr().err


def test_spark_that_has_stopped_by_itself_is_told_as_that() -> None:
    told: list[Mapping[str, Any]] = []
    error = RuntimeError(
        "An error occurred while calling o4550.stop.\n: IllegalStateException: Cannot call methods on a stopped SparkContext."
    )
    assert Ending(lambda event, detail: told.append(detail), OwnSpark()).failed(error) == 5
    (fault,) = told[0]["errors"]
    assert (fault["code"], fault["given"]) == ("JOB-005", "Spark has stopped by itself")
    assert "executors that could not be created" in fault["fix"]
