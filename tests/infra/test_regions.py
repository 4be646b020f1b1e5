from __future__ import annotations

import subprocess
import sys

import pytest

from penstock.infra.regions import known_region, known_regions


def test_every_region_of_every_partition_is_known_and_nothing_else() -> None:
    assert {"us-east-1", "eu-central-1", "us-gov-west-1", "cn-north-1"} < set(known_regions())
    assert not any(region.endswith("-global") for region in known_regions())


def test_a_region_that_does_not_exist_is_reported_with_the_closest_that_do() -> None:
    with pytest.raises(ValueError, match="did you mean eu-central-2 or eu-central-1"):
        known_region("eu-central-7")


def test_botocore_is_not_imported_for_that() -> None:
    asked = "import sys; from penstock.infra.regions import known_regions; assert known_regions(); print('botocore' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout.strip() == "False"
