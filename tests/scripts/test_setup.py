"""The set-up as a user runs it, in a small checkout with fake tools: what it detects, installs, leaves and prints."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.scripts import errors
from penstock.scripts.installation import pip_settings
from penstock.scripts.layout import ROOT
from penstock.sizing.errors import PenstockError

# Programs that the script itself calls; its PATH contains nothing else of this machine.
SYSTEM = [
    *("awk", "bash", "cat", "chmod", "cmp", "cp", "cut", "dirname", "find", "grep", "head", "mkdir", "mktemp", "mv", "rm", "sed"),
    *("sh", "sha256sum", "shasum", "sleep", "sort", "tail", "tr", "yes"),
]
FAKES = {
    "java": "echo 'openjdk version \"21.0.2\" 2024-01-16' >&2; echo jdk.compiler@21.0.2",
    "mvn": "printf '\\033[1mApache Maven 3.9.9\\033[m\\nJava version: 21\\n'",
    "node": "echo v22.3.0",
    "npm": "echo 'npm warn Unknown user config \"x\". node 1.2.3' >&2; echo 10.9.0",
    "terraform": "echo 'Warning: Unable to open CLI configuration file' >&2; echo Terraform v1.11.4; echo on linux_amd64",
    "python3": """
        case "$*" in
        *'penstock finds'*) echo "penstock finds 3.12.1" ;;
        '-m venv '*) mkdir -p "$3/bin" && echo 'version = 3.12.1' >"$3/pyvenv.cfg" && cp "$FAKES/bin/python3" "$3/bin/python" ;;
        '-m pip '*)
            if [ -x "$FAKES/pip" ]; then exec "$FAKES/pip" "$@"; fi
            case "$*" in *uv.lock) cp "$FAKES/uv" "${0%/*}/uv" ;; esac
            ;;
        *) exec "$REAL_PYTHON" "$@" ;;
        esac
    """,
}


# Replaces the verb that fetches jars and cdktf-cli, which has its own tests.
VERB = """
import os, pathlib, sys
fakes = pathlib.Path(os.environ["FAKES"])
with (fakes / "calls").open("a") as calls:
    print("penstock", *sys.argv[1:], file=calls)
if "--check" in sys.argv:
    sys.exit(0 if (fakes / "fetched").exists() else 4)
if (fakes / "refused").exists():
    sys.exit("error[TOOL-011]: cannot download the jars")
(fakes / "fetched").touch()
"""


class Checkout:
    """A small checkout with the real `scripts/setup`, and fake tools."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "a checkout's"
        self.fakes = folder / "fakes"
        self.bin = self.fakes / "bin"
        self.calls = self.fakes / "calls"
        self.bin.mkdir(parents=True)
        for name in SYSTEM:
            path = shutil.which(name)
            if path:
                (self.bin / name).symlink_to(path)
        for name, body in FAKES.items():
            self.tool(name, body)
        self._fill()

    def _fill(self) -> None:
        for folder in ("requirements", "scripts/installation", "penstock/scripts"):
            (self.root / folder).mkdir(parents=True)
        shutil.copy(ROOT / "scripts" / "setup", self.root / "scripts" / "setup")
        for name in ("build.lock", "main.lock", "uv.lock"):
            (self.root / "requirements" / name).write_text(name)
        (self.root / "scripts/installation/pip_settings.py").write_text("print(\"export UV_FIND_LINKS='/some wheels'\")")
        for package in ("penstock", "penstock/scripts"):
            (self.root / package / "__init__.py").touch()
        (self.root / "penstock/scripts/__main__.py").write_text(VERB)
        self.uv("true")

    def uv(self, body: str, version: str = "0.13.9") -> Path:
        """The uv from the lock file."""
        path = self.fakes / "uv"
        answer = f'[ "$1" != --version ] || {{ echo uv {version}; exit; }}'
        path.write_text(f'#!/bin/sh\n{answer}\necho "uv $* from $UV_FIND_LINKS" >>"$FAKES/calls"\n{body}\n')
        path.chmod(0o755)
        return path

    def tool(self, name: str, body: str) -> None:
        path = self.bin / name
        path.write_text(f'#!/bin/sh\necho "{name} $*" >>"$FAKES/calls"\n{body}\n')
        path.chmod(0o755)

    def pip(self, body: str) -> None:
        path = self.fakes / "pip"
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(self.root / "scripts" / "setup"), *arguments],
            env={
                "PATH": str(self.bin),
                "HOME": str(self.fakes),
                "FAKES": str(self.fakes),
                "REAL_PYTHON": sys.executable,
                "TMPDIR": str(self.fakes),
                **environment,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.fakes,
            start_new_session=True,
        )

    def run(self, *arguments: str, **environment: str) -> tuple[int, str]:
        """Run the set-up; return its exit code and its output."""
        process = self.start(*arguments, **environment)
        said, _ = process.communicate(timeout=60)
        return process.returncode, said

    def called(self, pattern: str) -> int:
        """Count the calls of tools that match the pattern."""
        return len(re.findall(pattern, self.calls.read_text(), re.MULTILINE)) if self.calls.exists() else 0

    def blocked_pip(self) -> None:
        """Make pip report its process id and wait for a signal or a file."""
        self.pip('echo $$ >"$FAKES/pip.pid.new"; mv "$FAKES/pip.pid.new" "$FAKES/pip.pid"; until [ -e "$FAKES/go" ]; do sleep 0.05; done')

    def pid_of_blocked_pip(self, setup: subprocess.Popen[str]) -> int:
        return int(until(self.fakes / "pip.pid", setup).read_text())


def until(path: Path, process: subprocess.Popen[str]) -> Path:
    """Wait until a file exists, as long as the process that creates it is alive."""
    limit = time.monotonic() + 30
    while not path.exists():
        assert process.poll() is None, process.stdout and process.stdout.read()
        assert time.monotonic() < limit, f"{path} has not come"
        time.sleep(0.02)
    return path


def ended(pid: int) -> bool:
    """Whether a process is gone, or a zombie that was not reaped yet."""
    try:
        os.kill(pid, 0)
        return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except ProcessLookupError:
        return True
    except FileNotFoundError:
        # It has just ended, or this system has no /proc.
        return Path("/proc/self").exists()


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Checkout]:
    made = Checkout(tmp_path)
    yield made
    # A pip that is still waiting exits on its own.
    (made.fakes / "go").touch()


def test_a_missing_tool_is_named_with_how_to_get_it(checkout: Checkout) -> None:
    (checkout.bin / "mvn").unlink()
    code, said = checkout.run()
    assert code == 4
    assert re.search(
        r"error\[TOOL-001\]: missing tool\n  at   mvn\n  need Maven 3\.6\.3 or later.*\n"
        r"  fix  .*apt-get install maven.*brew install maven.*page",
        said,
    )
    assert said.count("error[") == 1
    assert not (checkout.root / ".venv").exists()


def test_all_missing_and_old_tools_are_named_together(checkout: Checkout) -> None:
    for name in ("java", "npm", "python3"):
        (checkout.bin / name).unlink()
    checkout.tool("node", "echo v18.20.4")
    checkout.tool("terraform", "echo Terraform v1.5.7")
    # As Maven does without Java: Java has its own error.
    checkout.tool("mvn", "echo 'The JAVA_HOME environment variable is not defined correctly' >&2; exit 1")
    code, said = checkout.run()
    assert code == 4
    assert re.findall(r"  at   (\w+)", said) == ["python3", "java", "node", "npm", "terraform"]
    assert said.count("  fix  ") == 5


@pytest.mark.parametrize(
    ("tool", "says", "version"),
    [
        ("java", 'java version "1.8.0_392"', "1.8.0"),
        ("java", 'openjdk version "16.0.2" 2021-07-20', "16.0.2"),
        ("mvn", "Apache Maven 3.6.2 (40f52333136460af0dc0d7232c0dc0bcf0d9e117)", "3.6.2"),
        ("node", "v19.9.0", "19.9.0"),
        ("npm", "8.19.4", "8.19.4"),
        ("terraform", "Terraform v1.5.7", "1.5.7"),
    ],
)
def test_a_tool_that_is_too_old_is_named_with_its_version(checkout: Checkout, tool: str, says: str, version: str) -> None:
    checkout.tool(tool, f"echo '{says}'")
    code, said = checkout.run("--check")
    assert code == 4
    assert f"error[TOOL-002]: unsupported tool version\n  at   {tool} = {version} ({checkout.bin / tool})\n" in said


def test_versions_are_compared_as_numbers(checkout: Checkout) -> None:
    checkout.tool("mvn", "echo Apache Maven 3.10.0")
    checkout.tool("java", "echo 'openjdk version \"25\" 2025-09-16'; echo jdk.compiler@25")
    checkout.tool("terraform", "echo Terraform v1.13.0-rc1")
    code, said = checkout.run("--check")
    assert (code, said) == (0, "tools: Python 3.12.1, java 25, mvn 3.10.0, node 22.3.0, npm 10.9.0, terraform 1.13.0\n")


def test_tools_that_hang_or_babble_are_ended_and_named(checkout: Checkout) -> None:
    checkout.tool("node", 'echo $$ >"$FAKES/hangs"; sleep 600')
    checkout.tool("mvn", r"printf '\0\377\376 %s \033[31m\n' 'Apache Maven of old'")
    checkout.tool("terraform", "exec yes")
    code, said = checkout.run("--check", PENSTOCK_TOOL_TIMEOUT_S="1")
    assert code == 4
    assert re.findall(r"error\[TOOL-003\]: cannot determine tool version\n  at   (\w+)", said) == ["mvn", "node", "terraform"]
    assert "Apache Maven of old" in said
    assert ended(int((checkout.fakes / "hangs").read_text()))


def test_java_home_goes_before_the_path(checkout: Checkout) -> None:
    code, said = checkout.run("--check", JAVA_HOME=str(checkout.fakes / "gone"))
    assert code == 4
    assert f"error[TOOL-001]: missing tool\n  at   {checkout.fakes / 'gone'}/bin/java\n" in said


def test_a_java_without_a_compiler_is_named(checkout: Checkout) -> None:
    checkout.tool("java", "echo 'openjdk version \"21.0.2\" 2024-01-16'; echo java.base@21.0.2")
    code, said = checkout.run("--check")
    assert code == 4
    assert f"error[TOOL-001]: missing tool\n  at   javac, the compiler of {checkout.bin / 'java'}\n" in said
    assert "a JDK of Java 17 or later" in said


def test_the_first_suitable_python_is_used(checkout: Checkout) -> None:
    fits = (checkout.bin / "python3").read_text()
    checkout.tool("python3", "echo penstock finds 3.9.2")
    checkout.tool("python3.13", "echo 'python3.13: command not found' >&2; exit 127")
    (checkout.bin / "python3.12").write_text(fits)
    (checkout.bin / "python3.12").chmod(0o755)
    code, said = checkout.run("--check")
    assert code == 0
    assert "Python 3.12.1" in said


def test_every_python_that_does_not_fit_is_named(checkout: Checkout) -> None:
    checkout.tool("python3", "echo penstock finds 3.14.0")
    checkout.tool("python3.13", "exit 127")
    checkout.tool("python3.12", "echo penstock finds 3.12.3 without venv")
    code, said = checkout.run("--check")
    assert code == 4
    assert "python3 (3.14.0), " in said
    assert "python3.13 (no version), " in said
    assert "python3.12 (3.12.3 without venv or ensurepip)\n" in said


def test_a_requested_python_that_is_missing_is_an_error(checkout: Checkout) -> None:
    code, said = checkout.run(PENSTOCK_PYTHON="python3.99")
    assert code == 4
    assert "at   PENSTOCK_PYTHON = python3.99\n" in said


def test_another_python_that_is_asked_for_gets_an_environment_of_its_own(checkout: Checkout) -> None:
    assert checkout.run()[0] == 0
    assert checkout.run(PENSTOCK_PYTHON="python3") == (0, "Penstock is set up: ready\n")
    checkout.tool("python3.11", FAKES["python3"].replace("3.12.1", "3.11.9").replace("bin/python3", "bin/python3.11"))
    code, said = checkout.run(PENSTOCK_PYTHON="python3.11")
    assert code == 0, said
    assert "3.11.9" in (checkout.root / ".venv" / "pyvenv.cfg").read_text()
    assert checkout.run() == (0, "Penstock is set up: ready\n"), "what is there is kept where no Python is asked for"


def test_the_second_run_has_nothing_to_do(checkout: Checkout) -> None:
    code, said = checkout.run()
    assert code == 0, said
    assert said.endswith("Penstock is set up: ready\n")
    assert checkout.called("^uv pip install .*--require-hashes -r .*(build|main).lock from /some wheels$") == 2
    assert not checkout.called("pip install .*(build|main).lock$")
    checkout.calls.unlink()
    assert checkout.run() == (0, "Penstock is set up: ready\n")
    assert sorted(checkout.calls.read_text().splitlines()) == [
        "java -version",
        "node --version",
        "penstock setup --check",
        "python3 -P -m penstock.scripts setup --check",
        "terraform version",
    ]
    assert not list((checkout.root / ".penstock" / "tmp").iterdir())


def test_a_tool_that_a_run_needs_is_looked_for_on_every_run(checkout: Checkout) -> None:
    assert checkout.run()[0] == 0
    (checkout.bin / "terraform").unlink()
    code, said = checkout.run()
    assert code == 4
    assert "at   terraform\n" in said


def test_a_changed_lock_makes_a_new_environment_and_fetches_nothing_else(checkout: Checkout) -> None:
    assert checkout.run()[0] == 0
    checkout.calls.unlink()
    (checkout.root / "requirements" / "main.lock").write_text("changed")
    code, said = checkout.run()
    assert code == 0, said
    assert (checkout.called("-m venv"), checkout.called("^uv pip install")) == (1, 2)


def test_a_recent_uv_in_the_path_is_used(checkout: Checkout) -> None:
    shutil.copy(checkout.uv("true"), checkout.bin / "uv")
    assert checkout.run()[0] == 0
    assert (checkout.called("pip install .*uv.lock"), checkout.called("^uv pip install")) == (0, 2)


def test_an_old_uv_of_the_path_is_left_alone(checkout: Checkout) -> None:
    shutil.copy(checkout.uv("exit 1", version="0.7.22"), checkout.bin / "uv")
    checkout.uv("true")
    assert checkout.run()[0] == 0
    assert (checkout.called("pip install .*uv.lock"), checkout.called("^uv pip install")) == (1, 2)


def test_pip_goes_on_where_uv_cannot(checkout: Checkout) -> None:
    checkout.uv("echo no route to host >&2; exit 2")
    code, said = checkout.run()
    assert code == 0, said
    assert ".penstock/logs/python.log says why" in said
    assert "no route to host" in (checkout.root / ".penstock/logs/python.log").read_text()
    assert checkout.called("^python3 -m pip install .*--require-hashes -r .*(build|main).lock$") == 2


def test_the_least_uv_is_that_of_the_package() -> None:
    least = ".".join(str(part) for part in pip_settings.UV_LEAST)
    assert f"UV_LEAST={least}\n" in (ROOT / "scripts" / "setup").read_text()


def test_what_is_no_python_package_is_fetched_by_the_verb_with_its_errors(checkout: Checkout) -> None:
    (checkout.fakes / "refused").touch()
    code, said = checkout.run()
    assert code == 1
    assert said.endswith("error[TOOL-011]: cannot download the jars\n")
    (checkout.fakes / "refused").unlink()
    assert checkout.run()[0] == 0
    assert checkout.called("-m venv") == 1


def test_packages_that_cannot_be_installed_are_an_error_with_what_pip_said(checkout: Checkout) -> None:
    checkout.pip("echo no route to host >&2; exit 1")
    exit_code, said = checkout.run()
    assert exit_code == 4
    assert "    | no route to host\n" in said
    assert "error[TOOL-010]: " in said
    (checkout.fakes / "pip").unlink()
    assert checkout.run()[0] == 0
    assert checkout.run() == (0, "Penstock is set up: ready\n")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["ctrl-c", "kill"])
def test_an_interrupted_step_ends_its_tool_and_is_run_again(checkout: Checkout, number: signal.Signals, code: int) -> None:
    checkout.blocked_pip()
    setup = checkout.start()
    pip = checkout.pid_of_blocked_pip(setup)
    setup.send_signal(number)
    said, _ = setup.communicate(timeout=30)
    assert setup.returncode == code
    assert "rerun ./scripts/setup" in said
    assert ended(pip)
    (checkout.fakes / "pip").unlink()
    assert checkout.run()[0] == 0
    assert checkout.called("-m venv") == 2


def test_a_set_up_that_was_killed_is_run_again_after_what_it_left_behind(checkout: Checkout) -> None:
    checkout.blocked_pip()
    setup = checkout.start()
    pip = checkout.pid_of_blocked_pip(setup)
    with setup:
        setup.kill()
    again = checkout.start()
    assert again.stdout
    said = ""
    while "waiting" not in said:
        said += again.stdout.readline()
        assert again.poll() is None, said
    os.kill(pip, signal.SIGKILL)
    (checkout.fakes / "go").touch()
    assert "ready\n" in again.communicate(timeout=30)[0]
    assert again.returncode == 0


def test_two_set_ups_at_once_do_the_work_once(checkout: Checkout) -> None:
    checkout.blocked_pip()
    first = checkout.start()
    checkout.pid_of_blocked_pip(first)
    second = checkout.start()
    assert second.stdout
    said = ""
    while "waiting" not in said:
        said += second.stdout.readline()
        assert second.poll() is None, said
    assert f"(process {first.pid})" in said
    (checkout.fakes / "go").touch()
    for setup in (first, second):
        assert "ready\n" in setup.communicate(timeout=30)[0]
        assert setup.returncode == 0
    assert checkout.called("-m venv") == 1


def test_the_command_runs_this_checkout_from_any_folder(checkout: Checkout, tmp_path: Path) -> None:
    assert checkout.run()[0] == 0
    (checkout.root / "penstock" / "scripts" / "__main__.py").write_text("import os, sys; print(os.getcwd(), *sys.argv[1:])")
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "penstock").mkdir(parents=True)
    (elsewhere / "penstock" / "__init__.py").write_text("raise SystemExit('the package of the folder that the caller is in')")
    command = [str(checkout.root / ".venv" / "bin" / "penstock"), "size", "a b"]
    environment = {"FAKES": str(checkout.fakes), "REAL_PYTHON": sys.executable}
    ran = subprocess.run(command, cwd=elsewhere, env=environment, capture_output=True, text=True, timeout=30, check=False)
    assert ran.stdout == f"{elsewhere} size a b\n", ran.stderr


def test_a_moved_checkout_gets_a_new_environment(checkout: Checkout) -> None:
    assert checkout.run()[0] == 0
    checkout.root = checkout.root.rename(checkout.root.with_name("moved"))
    code, said = checkout.run()
    assert code == 0, said
    assert checkout.called("-m venv") == 2


def test_a_wrong_option_is_an_error(checkout: Checkout) -> None:
    code, said = checkout.run("--frob")
    assert code == 2
    assert "error[TOOL-021]: invalid option\n  at   scripts/setup --frob\n" in said


def test_the_codes_of_the_shell_scripts_are_those_of_the_error_classes() -> None:
    classes = [
        value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, PenstockError) and "code" in vars(value)
    ]
    known = {error.code: error.title for error in classes if error.code.startswith("TOOL-")}
    text = "".join((ROOT / "scripts" / name).read_text() for name in ("setup", "quickstart"))
    quoted = [(code, title) for code, _, title in re.findall(r"""(TOOL-\d+) (['"])(.+?)\2""", text)]
    used = set(quoted + re.findall(r"error\[(TOOL-\d+)\]: (.+)", text))
    assert used <= set(known.items())
    assert {code for code, _ in used} >= {"TOOL-001", "TOOL-002", "TOOL-003", "TOOL-010", "TOOL-014"}
