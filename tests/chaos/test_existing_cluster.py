"""All stacks that an emulated AWS can carry, in a VPC and a cluster that others have made."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.infra.environment import Environment
from penstock.infra.environment_file import load
from penstock.scripts.local.emulated_stacks import EmulatedStacks
from tests.emulated.unchanged_cluster import leaves_a_cluster_as_it_was
from tests.infra.existing import OURS, in_existing


@pytest.mark.timeout(2_700)
def test_all_stacks_come_and_go_and_the_cluster_stays_as_it_was(tmp_path: Path) -> None:
    data = load("local").model_dump(by_alias=True, exclude_none=True)
    in_existing(data["spec"], OURS)
    with EmulatedStacks(Environment.model_validate(data), folder=tmp_path, localstack=False, progress=print) as emulated:
        jobs = {f"{job}-{part}" for job in ("flights", "user-credit") for part in ("driver", "executor")}
        leaves_a_cluster_as_it_was(emulated.stacks, emulated.access, created=True, services={"fluent-bit", *jobs})
