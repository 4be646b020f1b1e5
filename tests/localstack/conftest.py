from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from penstock.infra.environment_file import LOCAL_ENVIRONMENT, load
from penstock.scripts.emulation.localstack import ENDPOINT_VARIABLE
from penstock.scripts.emulation.localstack_python import find
from penstock.scripts.local.emulated_stacks import EmulatedStacks
from penstock.testing import AppliedStacks
from penstock.testing.applied_stacks import refuse_changes


@pytest.fixture(scope="session")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AppliedStacks]:
    """As of ``aws_stacks``, applied once for all tests and planned again; that it can be destroyed is a test of the tier chaos."""
    if not os.environ.get(ENDPOINT_VARIABLE) and find() is None:
        pytest.skip("there is no Python 3.13, which LocalStack runs on, and LOCALSTACK_ENDPOINT names none that runs")
    folder = tmp_path_factory.mktemp("stacks")
    with EmulatedStacks(load(LOCAL_ENVIRONMENT), folder=folder, localstack=True, progress=print) as emulated:
        emulated.stacks.apply()
        refuse_changes(emulated.stacks.plan())
        yield AppliedStacks(emulated)
