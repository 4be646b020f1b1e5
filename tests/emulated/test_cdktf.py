"""cdktf itself, as a platform team calls it, with one of the stacks; the tier chaos has it deploy and destroy all of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.emulated.cdktf_deployment import LIMIT_S, Deployed, deployed

pytestmark = pytest.mark.timeout(LIMIT_S)


@pytest.fixture(scope="module")
def stacks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with deployed(tmp_path_factory.mktemp("cdktf"), ("registry",)) as running:
        yield running


def test_it_deploys_what_it_is_asked_for_and_nothing_is_left_to_change(stacks: Deployed) -> None:
    assert stacks.states() == {"registry"}
    assert stacks.differing() == []
