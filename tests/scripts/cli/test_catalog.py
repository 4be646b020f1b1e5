"""``penstock catalog list`` and ``show``, as they are called."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from penstock.sizing.catalog.catalog import SpotPrice, shipped
from tests.scripts.cli.called import Called, penstock

ROOT = Path(__file__).resolve().parents[3]


def python(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {"PYTHONPATH": str(ROOT), "PATH": ""}
    return subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False, env=environment)


def catalog(*words: str) -> Called:
    return penstock("catalog", *words)


def as_json(*words: str) -> dict[str, Any]:
    done = catalog(*words, "-o", "json")
    assert (done.returncode, done.stderr) == (0, "")
    document: dict[str, Any] = json.loads(done.stdout)
    return document


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    """The shipped catalog with one spot price, as a snapshot of another day."""
    quotes = {"m5.large": (SpotPrice(zone="us-east-1a", usd_per_h=0.0412), SpotPrice(zone="us-east-1b", usd_per_h=0.039))}
    path = tmp_path / "fresh.json"
    path.write_text(shipped().model_copy(update={"date": "2026-11-20", "source": "a test", "spot": quotes}).model_dump_json())
    return path


def test_the_list_says_what_is_shipped_with_its_date() -> None:
    (known,) = as_json("list")["catalogs"]
    assert (known["catalog"], known["region"], known["date"], known["types"]) == ("shipped", "us-east-1", "2026-07", 1386)
    assert known["typesWithOnDemandPrice"] == 1334
    done = catalog("list")
    assert done.returncode == 0
    assert "us-east-1  2026-07  1,386" in done.stdout


def test_a_snapshot_is_listed_beside_it(snapshot: Path) -> None:
    listed = as_json("list", str(snapshot))["catalogs"]
    assert [known["date"] for known in listed] == ["2026-07", "2026-11-20"]
    assert listed[1]["typesWithSpotPrice"] == 1


def test_a_type_is_shown_with_facts_allocatable_labels_and_price() -> None:
    shown = as_json("show", "m7g.xlarge")
    assert shown["instanceType"]["memoryMib"] == 16384
    assert shown["instanceType"]["onDemandUsdPerH"] == 0.1632
    # Source: Karpenter's own number for this type.
    assert shown["allocatable"]["AL2023"]["memoryMib"] == 14103
    assert shown["labels"]["karpenter.k8s.aws/instance-generation"] == ["7"]
    text = catalog("show", "m7g.xlarge").stdout
    assert "0.1632 USD an hour" in text
    assert "penstock catalog refresh --region us-east-1" in text


def test_spot_prices_come_from_the_snapshot(snapshot: Path) -> None:
    assert "us-east-1a 0.0412, us-east-1b 0.039 USD an hour" in catalog("show", "m5.large", "--catalog", str(snapshot)).stdout


def test_an_unknown_type_is_an_error_that_knows_what_was_meant() -> None:
    done = catalog("show", "m7g.xlrage")
    assert done.returncode == 2
    assert "did you mean m7g.xlarge" in done.stderr


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((), "USE-001"),
        (("refresh",), "USE-001"),
        (("refresh", "--region", "../etc"), "USE-001"),
        (("list", "missing.json"), "SPEC-001"),
        (("list", "README.md"), "SIZ-031"),
        (("list", "."), "SPEC-001"),
    ],
)
def test_a_wrong_call_ends_with_2_and_without_a_traceback(words: tuple[str, ...], code: str) -> None:
    done = catalog(*words)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error[{code}]")


def test_only_a_refresh_needs_boto3_and_names_it_where_it_is_missing(tmp_path: Path) -> None:
    without = "import sys; sys.modules['boto3'] = None; from penstock.scripts.cli.command import main; sys.exit(main(sys.argv[1:]))"
    assert python("-c", without, "catalog", "show", "m5.large").returncode == 0
    done = python("-c", without, "catalog", "refresh", "--region", "us-east-1", "--out", str(tmp_path / "never.json"))
    assert done.returncode == 4
    assert "error[TOOL-023]" in done.stderr and "boto3" in done.stderr
    assert list(tmp_path.iterdir()) == []
