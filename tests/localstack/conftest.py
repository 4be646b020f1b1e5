from __future__ import annotations

import os

import pytest

from penstock.scripts.emulation.localstack import ENDPOINT_VARIABLE
from penstock.scripts.emulation.localstack_python import find
from penstock.testing import AppliedStacks, AwsStacks
from penstock.testing.applied_stacks import LOCALSTACK
from penstock.testing.plugin import aws_stacks

__all__ = ["aws_stacks"]


@pytest.fixture(scope="session")
def penstock_aws() -> str:
    """LocalStack, started by the test kit or by the user."""
    if not os.environ.get(ENDPOINT_VARIABLE) and find() is None:
        pytest.skip("there is no Python 3.13, which LocalStack runs on, and LOCALSTACK_ENDPOINT names none that runs")
    return LOCALSTACK


@pytest.fixture(scope="session")
def everything(aws_stacks: AwsStacks) -> AppliedStacks:
    """Applied once for all tests, and planned again without changes."""
    return aws_stacks("local")
