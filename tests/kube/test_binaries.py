"""Programs from Go modules, on modules of a few lines: the real ones are what the other tests run on."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from penstock.infra.environment_file import load
from penstock.scripts.kube import binaries
from penstock.scripts.kube.binaries import Program
from penstock.scripts.kube.errors import BuildTooLong, CacheNotWritable, GoMissing, GoUnfit, ModulesNotFetched, NotBuilt
from penstock.scripts.layout import ROOT
from tests.kube.evidence import wait_for

MAIN = 'package main\n\nimport "fmt"\n\nfunc main() { fmt.Println("hello") }\n'


@pytest.fixture
def hello(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """A program of one line, and a cache of its own."""
    if shutil.which("go") is None:
        pytest.skip("go is not in PATH")
    folder = tmp_path / "module"
    (folder / "hello").mkdir(parents=True)
    (folder / "go.mod").write_text("module greeting\n\ngo 1.25.0\n")
    (folder / "go.sum").write_text("")
    (folder / "hello" / "main.go").write_text(MAIN)
    # Go's own cache stays where it is: with an empty one it would compile its whole standard library.
    monkeypatch.setenv(
        "GOCACHE", subprocess.run(["go", "env", "GOCACHE"], capture_output=True, text=True, timeout=60, check=True).stdout.strip()
    )
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Program("hello", "greeting/hello", folder)


def said_by(program: Path) -> str:
    return subprocess.run([program], capture_output=True, text=True, timeout=30, check=True).stdout


def test_a_program_is_built_outside_of_the_checkout_and_runs(hello: Program, tmp_path: Path) -> None:
    program = binaries.built(hello)
    assert program.is_relative_to(tmp_path / "cache" / "penstock" / "kube")
    assert said_by(program) == "hello\n"


def test_an_existing_program_is_not_built_again(hello: Program) -> None:
    first = binaries.built(hello)
    built_at = first.stat().st_mtime_ns
    lines: list[str] = []
    assert binaries.built(hello, lines.append) == first
    assert (first.stat().st_mtime_ns, lines) == (built_at, [])


def test_the_progress_of_a_build_is_reported(hello: Program) -> None:
    lines: list[str] = []
    binaries.built(hello, lines.append)
    assert lines[0] == "hello: fetching its Go modules"
    assert lines[-1].startswith("hello: built in ")


def test_another_pin_is_built_next_to_the_old_one(hello: Program) -> None:
    old = binaries.built(hello)
    (hello.module / "go.mod").write_text("module greeting\n\ngo 1.25.1\n")
    new = binaries.built(hello)
    assert new != old
    assert said_by(old) == said_by(new)


def test_a_build_that_is_killed_leaves_no_program_and_the_next_one_makes_it(hello: Program, tmp_path: Path) -> None:
    # A compiler that never ends: the process that waits for it is killed while it does.
    tools = tmp_path / "tools"
    tools.mkdir()
    never_ends = f'[ "$1" = build ] && touch {tmp_path}/compiling && exec sleep 600'
    (tools / "go").write_text(f'#!/bin/sh\n{never_ends}\nexec {shutil.which("go")} "$@"\n')
    (tools / "go").chmod(0o755)
    script = "import sys, pathlib; from penstock.scripts.kube import binaries\n"
    script += "binaries.built(binaries.Program(*sys.argv[1:3], pathlib.Path(sys.argv[3])))"
    command = [sys.executable, "-c", script, hello.name, hello.package, str(hello.module)]
    environment = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, env=environment) as building:
        wait_for((tmp_path / "compiling").exists)
        building.send_signal(signal.SIGKILL)
    (folder,) = binaries.cache_folder().iterdir()
    assert not (folder / "hello").exists()
    assert said_by(binaries.built(hello)) == "hello\n"
    assert not list(folder.glob(".hello*"))


def test_two_builds_at_once_wait_for_one_another(hello: Program) -> None:
    folder = binaries.built(hello).parent
    (folder / hello.name).unlink()
    waits = threading.Event()
    with ThreadPoolExecutor() as pool, (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = pool.submit(binaries.built, hello, lambda line: waits.set() if line.startswith("waiting") else None)
        assert waits.wait(60)
        # The first one is done before the second begins.
        (folder / hello.name).write_text("#!/bin/sh\necho built by the first\n")
        (folder / hello.name).chmod(0o755)
        fcntl.flock(lock, fcntl.LOCK_UN)
        assert said_by(second.result(60)) == "built by the first\n"


def test_a_program_that_does_not_compile_is_an_error_with_the_compilers_words(hello: Program) -> None:
    (hello.module / "hello" / "main.go").write_text("package main\n\nfunc main() { nothing() }\n")
    with pytest.raises(NotBuilt) as caught:
        binaries.built(hello)
    assert "undefined: nothing" in caught.value.given


def test_a_module_that_is_not_pinned_is_not_fetched(hello: Program) -> None:
    (hello.module / "hello" / "main.go").write_text('package main\n\nimport _ "example.invalid/nowhere"\n\nfunc main() {}\n')
    with pytest.raises(ModulesNotFetched) as caught:
        binaries.built(hello)
    assert "example.invalid/nowhere" in caught.value.given


def test_a_build_is_stopped_at_its_time_limit(hello: Program) -> None:
    with pytest.raises(BuildTooLong) as caught:
        binaries.built(hello, limit_s=0)
    assert "at most 0 s" in caught.value.need


def test_without_go_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GoMissing) as caught:
        binaries.built(binaries.HELM)
    assert caught.value.exit_code == 4
    assert "install Go" in caught.value.fix


def test_a_go_that_is_too_old_is_named(hello: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOTOOLCHAIN", "local")
    (hello.module / "go.mod").write_text("module greeting\n\ngo 1.999.0\n")
    with pytest.raises(GoUnfit) as caught:
        binaries.built(hello)
    assert caught.value.need == "Go 1.999.0 or later"


def test_a_cache_that_is_no_folder_is_an_error(hello: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(CacheNotWritable):
        binaries.built(hello)


def test_what_is_shipped_is_pinned_and_names_no_proxy() -> None:
    pins = (binaries.MODULE / "go.sum").read_text("utf-8")
    text = (binaries.MODULE / "go.mod").read_text("utf-8")
    assert "://" not in text
    for program in binaries.PROGRAMS:
        assert f"\t{program.package}\n" in text
        assert any(program.package.startswith(line.split()[0]) for line in pins.splitlines())


def test_the_modules_are_those_of_one_kubernetes_the_one_that_production_names() -> None:
    text = (binaries.MODULE / "go.mod").read_text("utf-8")
    eks = load("production").spec.eks
    assert eks is not None and binaries.KUBERNETES.startswith(f"v{eks.version}.")
    assert f"\tk8s.io/kubernetes {binaries.KUBERNETES} " in text
    assert f"\thelm.sh/helm/v3 {binaries.HELM_VERSION} " in text
    staged = re.findall(r"^\tk8s\.io/[\w-]+ => k8s\.io/[\w-]+ (\S+)$", text, flags=re.MULTILINE)
    assert len(staged) > 20
    assert set(staged) == {binaries.KUBERNETES.replace("v1.", "v0.", 1)}
