"""Verbs that act on a job or on a session, as they are called: what is refused before anything is asked of AWS."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.infra.sessions_of_jobs import file_with
from tests.scripts.cli.called import penstock

VERBS = ["stop", "resume", "logs", "move"]


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    return file_with(tmp_path, [{"name": "shared", "jobs": ["a", "b"]}])


@pytest.mark.parametrize("verb", VERBS)
def test_a_session_that_is_none_is_named_with_those_that_there_are(environment: Path, verb: str) -> None:
    refused = penstock(verb, str(environment), "--session", "share")
    assert refused.returncode == 2
    assert "a session of environment production: shared" in refused.stderr
    assert "did you mean shared?" in refused.stderr


@pytest.mark.parametrize("verb", VERBS)
def test_one_of_both_is_needed_and_not_more(environment: Path, verb: str) -> None:
    for words in ([], ["--job", "a", "--session", "shared"]):
        refused = penstock(verb, str(environment), *words)
        assert (refused.returncode, "--session" in refused.stderr) == (2, True)


def test_a_job_of_a_session_does_not_move_alone(environment: Path) -> None:
    refused = penstock("move", str(environment), "--job", "b")
    assert refused.returncode == 2
    assert "that of session shared moves with all its jobs" in refused.stderr
    assert "--session shared" in refused.stderr
