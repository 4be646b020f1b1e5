"""What `penstock up` leaves behind, however it ends."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from penstock.scripts.cli.command import main
from tests.emulated.clicks import LIMIT_S, processes, until, up, wait_until_gone


@pytest.mark.chaos
def test_killed_hard_it_leaves_no_process(spec: Path, temporary: Path) -> None:
    running = up(spec, temporary)
    until(running, r"^  spark .*starting")
    running.kill()
    running.communicate(timeout=60)
    wait_until_gone(temporary)


@pytest.mark.parametrize("option", [["--aws-port"], ["--kafka-port"], ["--executors=1", "--master-port"]], ids=" ".join)
def test_a_port_in_use_is_named_with_how_to_choose_another(spec: Path, temporary: Path, option: list[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        running = up(spec, temporary, *option, str(port))
        _, result = running.communicate(timeout=LIMIT_S)
    assert running.returncode == 5, result
    assert "error[RUN-002]" in result
    assert f"127.0.0.1:{port}" in result
    assert option[-1] in result
    assert "Traceback" not in result
    wait_until_gone(temporary)


@pytest.mark.chaos
def test_a_detached_run_stays_after_its_check_until_it_is_stopped(
    spec: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    starting = up(spec, temporary, "--detach")
    _, said = starting.communicate(timeout=LIMIT_S)
    assert starting.returncode == 0, said
    monkeypatch.chdir(spec.parent)
    assert main(["status", "local"]) == 0
    assert "penstock up of clicks, detached on this machine: running, process " in capsys.readouterr().out
    assert main(["logs", "local", "--job", "clicks"]) == 0
    assert "correct: rows in = out + quarantined + late + filtered" in capsys.readouterr().out
    assert processes(temporary)
    assert main(["stop", "local", "--job", "clicks"]) == 0
    assert (list(temporary.iterdir()), list((spec.parent / ".penstock/detached/local").iterdir())) == ([], [])
    wait_until_gone(temporary)
