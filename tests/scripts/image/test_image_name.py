from __future__ import annotations

import pytest

from penstock.scripts.image.errors import BadImageName
from penstock.scripts.image.image_name import checked


@pytest.mark.parametrize(
    "image", ["jobs:1", "localhost:5000/team/jobs:1.4.2-9f2c1ab", "111122223333.dkr.ecr.us-east-1.amazonaws.com/a/jobs:1"]
)
def test_a_name_with_a_tag_is_taken(image: str) -> None:
    assert checked(image) == image


@pytest.mark.parametrize(
    "image", ["jobs", "", ":1", "Jobs:1", "a/Team:1", "jobs:-1", "jobs:", "localhost:5000/jobs", "a b:1", "https://a/b:1"]
)
def test_any_other_is_refused(image: str) -> None:
    with pytest.raises(BadImageName) as raised:
        checked(image)
    assert raised.value.given == image
