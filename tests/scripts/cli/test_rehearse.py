from __future__ import annotations

from pathlib import Path

import pytest

from penstock.scripts.cli.command import main


def test_a_report_that_cannot_be_written_is_refused_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    assert main(["rehearse", "local", "--junit", "file/rehearsal.xml"]) == 2
    said = capsys.readouterr().err
    assert "error[USE-040]" in said and "file/rehearsal.xml" in said
    assert [one.name for one in tmp_path.iterdir()] == ["file"]
