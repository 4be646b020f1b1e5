from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from penstock.scripts.layout import ROOT
from penstock.scripts.provisioning import workplace
from penstock.scripts.provisioning.errors import StateLocked

HOLD = "import sys; from pathlib import Path; from penstock.scripts.provisioning import workplace\n"
HOLD += "with workplace.held(Path(sys.argv[1]), 'deploy'): print('held', flush=True); sys.stdin.read()"


def test_a_second_command_on_this_machine_reports_which_process_holds_the_folder(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == b"held\n"
        with pytest.raises(StateLocked) as raised, workplace.held(tmp_path, "destroy"):
            pass
        assert f"process {first.pid} of this machine is running 'penstock deploy' since" in raised.value.given
        # The lock is released with its process, however that ends.
        first.kill()
        first.wait()
    with workplace.held(tmp_path, "destroy") as folder:
        assert folder == tmp_path


def test_the_folder_is_the_environments_own_unless_another_is_named(tmp_path: Path) -> None:
    assert workplace.folder_of("dev", None).parts[-3:] == (".penstock", "stacks", "dev")
    assert workplace.folder_of("dev", tmp_path) == tmp_path


def test_a_variable_names_another_folder_for_all_environments_as_an_emulated_one_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(workplace.FOLDER_VARIABLE, str(tmp_path / "deploys"))
    assert workplace.folder_of("dev", None) == tmp_path / "deploys" / "dev"
    assert workplace.folder_of("dev", tmp_path) == tmp_path
