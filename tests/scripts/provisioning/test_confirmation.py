from __future__ import annotations

import os
import subprocess
import sys

import pytest

from penstock.scripts.layout import ROOT

ASK = "from penstock.scripts.provisioning.confirmation import confirm\nfrom penstock.sizing.errors import PenstockError\n"
ASK += "try:\n    confirm('Destroy dev?', 'dev'); print('on')\nexcept PenstockError as error:\n    print(error.code)"


@pytest.mark.parametrize(("answer", "outcome"), [(b"dev\n", b"on"), (b"yes\n", b"DEP-008"), (b"\x04", b"DEP-008")])
def test_only_the_wanted_answer_goes_on(answer: bytes, outcome: bytes) -> None:
    ours, theirs = os.openpty()
    with subprocess.Popen([sys.executable, "-c", ASK], stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT) as asked:
        os.close(theirs)
        os.write(ours, answer)
        said, question = asked.communicate(timeout=60)
    os.close(ours)
    assert said.strip() == outcome
    assert b"Destroy dev? Only 'dev' is accepted: " in question


def test_without_a_terminal_it_is_not_assumed_that_it_goes_on() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", ASK], stdin=subprocess.DEVNULL, capture_output=True, cwd=ROOT, timeout=60, check=False, text=True
    )
    assert ran.stdout.strip() == "USE-001"
