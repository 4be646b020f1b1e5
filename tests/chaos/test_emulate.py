"""`penstock emulate` as a team uses it: an environment of their own, other tools beside it, and nothing left at its end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.emulated.clicks import until, wait_until_gone
from tests.emulated.team import LIMIT_S, bare, desk, emulate, left

__all__ = ["bare", "desk"]

# Another tool: it knows nothing of Penstock, and reads only the variables.
BOTO3 = """\
import boto3, json
account = boto3.client("sts").get_caller_identity()["Account"]
print(json.dumps([account, sorted(bucket["Name"] for bucket in boto3.client("s3").list_buckets()["Buckets"])]))
"""


# The provider waits a minute for the lifecycle rules of buckets.
@pytest.mark.timeout(LIMIT_S)
def test_an_environment_stays_up_for_other_tools_and_ends_with_nothing_left(desk: Path, bare: dict[str, str]) -> None:
    with emulate(desk, bare) as running:
        assert until(running, r"^  account ").split(maxsplit=1)[1] == "123456789012, region us-east-1\n"
        until(running, r"^  stop ")
        # In one shell, as a user has it; the plan of what is applied is empty.
        plan = f"{sys.executable} -m penstock.scripts deploy --plan-only -o json"
        script = f". .penstock/emulated/team/env && {sys.executable} -c '{BOTO3}' && {plan}"
        tools = subprocess.run(["bash", "-c", script], cwd=desk, env=bare, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        assert tools.returncode == 0, tools.stderr
        listed, _, document = tools.stdout.partition("\n")
        account, buckets = json.loads(listed)
        assert account == "123456789012"
        assert {"penstock-team-state", "team-checkpoints", "team-output"} <= set(buckets)
        planned = json.loads(document)
        assert (planned["against"], [stack["changes"] for stack in planned["stacks"]]) == ("the state", [[]])
        running.send_signal(signal.SIGINT)
        out, rest = running.communicate(timeout=120)
    assert running.returncode == 130, rest
    assert "output_bucket = team-output" in out
    # A plan beside it has not used the folder of the real environment of that name, whose state is elsewhere.
    assert (left(desk), [path.name for path in (desk / ".penstock").iterdir()]) == (["in-use"], ["emulated"])
    wait_until_gone(Path(bare["TMPDIR"]))
