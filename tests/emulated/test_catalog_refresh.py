"""``penstock catalog refresh`` against the emulated AWS: the real command, as a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.sizing.catalog import catalog
from penstock.sizing.catalog.catalog import Catalog, shipped
from penstock.sizing.catalog.instance_type import InstanceType

ROOT = Path(__file__).resolve().parents[2]

# The shipped catalog counts the devices of these twice, once as Neuron devices and once as inference accelerators.
COUNTED_TWICE = {f"inf1.{size}" for size in ("xlarge", "2xlarge", "6xlarge", "24xlarge")} | {
    f"inf2.{size}" for size in ("xlarge", "8xlarge", "24xlarge", "48xlarge")
}


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "penstock.scripts", "catalog", "refresh", *words]


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    return {"PYTHONPATH": str(ROOT), "PATH": "", **variables}


def refresh(variables: Mapping[str, str], *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*words), cwd=cwd, env=environment(variables), capture_output=True, text=True, timeout=180, check=False)


@pytest.fixture(scope="module")
def snapshot(aws: EmulatedAws, tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    folder = tmp_path_factory.mktemp("catalog")
    done = refresh(aws.environment(), "--region", "us-east-1", cwd=folder)
    assert done.returncode == 0, done.stderr
    (file,) = folder.iterdir()
    assert done.stdout == f"{file.name}\n"
    for shown in ("1,395 instance types", "6 zones", "on-demand prices of 1,334 types", "spot prices of 1,375 types"):
        assert shown in done.stderr
    return catalog.read(file.read_text("utf-8"))


def test_a_snapshot_says_its_region_day_and_source(aws: EmulatedAws, snapshot: Catalog) -> None:
    assert snapshot.region == "us-east-1"
    assert len(snapshot.date) == len("2026-11-21")
    assert snapshot.source == f"EC2 and the price list of {aws.endpoint}, which is not AWS"


def test_every_fact_of_every_type_agrees_with_the_shipped_catalog(snapshot: Catalog) -> None:
    assert [kind.name for kind in snapshot.types] == sorted(kind.name for kind in shipped().types)
    differing: dict[str, set[str]] = {}
    for kind in snapshot.types:
        known = shipped().get(kind.name)
        for field in InstanceType.model_fields:
            if getattr(kind, field) != getattr(known, field):
                differing.setdefault(field, set()).add(kind.name)
    assert differing == {"accelerators": COUNTED_TWICE}


def test_every_type_that_is_sold_as_spot_somewhere_has_a_price_a_zone(snapshot: Catalog) -> None:
    zones = {kind.name: kind.zones for kind in snapshot.types}
    assert len(snapshot.spot) == 1366
    assert all(tuple(quote.zone for quote in quotes) == zones[name] for name, quotes in snapshot.spot.items())


def test_where_no_price_is_known_there_is_none(aws: EmulatedAws, tmp_path: Path) -> None:
    out = tmp_path / "frankfurt.json"
    done = refresh(aws.environment(), "--region", "eu-central-1", "--out", str(out), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"{out}\n")
    known = catalog.read(out.read_text("utf-8"))
    assert {kind.on_demand_usd_per_h for kind in known.types} == {None}
    assert {zone for kind in known.types for zone in kind.zones} == {"eu-central-1a", "eu-central-1b", "eu-central-1c"}
    assert set(known.spot["m5.large"][0].model_dump()) == {"zone", "usd_per_h"}


def test_an_interrupted_refresh_leaves_what_was_there_and_can_be_run_again(aws: EmulatedAws, tmp_path: Path) -> None:
    out = tmp_path / "snapshot.json"
    out.write_text("what was there")
    with subprocess.Popen(
        command("--region", "us-east-1", "--out", str(out)),
        cwd=tmp_path,
        env=environment(aws.environment()),
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stderr is not None
        assert "the instance types ..." in running.stderr.readline()
        assert len(list(tmp_path.iterdir())) == 2
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=120)
    assert running.returncode == 130
    assert said.endswith("interrupted\n") and "Traceback" not in said
    assert [path.name for path in tmp_path.iterdir()] == ["snapshot.json"]
    assert out.read_text() == "what was there"
    assert refresh(aws.environment(), "--region", "us-east-1", "--out", str(out), cwd=tmp_path).returncode == 0
    assert len(catalog.read(out.read_text("utf-8")).types) == 1386


def test_without_credentials_it_ends_with_4_and_says_how_to_sign_in(aws: EmulatedAws, tmp_path: Path) -> None:
    own = {name: value for name, value in aws.environment().items() if "KEY" not in name}
    done = refresh(own, "--region", "us-east-1", cwd=tmp_path)
    assert done.returncode == 4
    assert "error[TOOL-030]: AWS credentials not found" in done.stderr and "aws sso login" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_profile_that_does_not_exist_ends_with_4(aws: EmulatedAws, tmp_path: Path) -> None:
    done = refresh(aws.environment() | {"AWS_PROFILE": "nobody"}, "--region", "us-east-1", cwd=tmp_path)
    assert done.returncode == 4
    assert "error[TOOL-030]" in done.stderr and "nobody" in done.stderr


def test_a_refusal_of_aws_exits_5_and_is_reported_in_its_words(tmp_path: Path) -> None:
    with EmulatedAws(log=tmp_path / "aws.log") as strict:
        # moto checks the keys from the first request on.
        address, plain = f"{strict.endpoint}/moto-api/reset-auth", {"Content-Type": "text/plain"}
        asked = urllib.request.Request(address, data=b"0", method="POST", headers=plain)
        with urllib.request.urlopen(asked, timeout=30) as answer:
            assert answer.status == 200
        folder = tmp_path / "here"
        folder.mkdir()
        done = refresh(strict.environment(), "--region", "us-east-1", cwd=folder)
    assert done.returncode == 5
    assert "error[RUN-020]: AWS request denied" in done.stderr
    assert "DescribeInstanceTypes in us-east-1" in done.stderr and "AuthFailure" in done.stderr
    assert list(folder.iterdir()) == []


def test_an_aws_that_does_not_answer_ends_with_5(aws: EmulatedAws, tmp_path: Path) -> None:
    nowhere = {"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_MAX_ATTEMPTS": "1"}
    done = refresh(aws.environment() | nowhere, "--region", "us-east-1", cwd=tmp_path)
    assert done.returncode == 5
    assert "error[RUN-021]: AWS unreachable" in done.stderr


def test_a_missing_folder_is_reported_before_a_request_to_aws(tmp_path: Path) -> None:
    done = refresh({"HOME": os.devnull}, "--region", "us-east-1", "--out", str(tmp_path / "no" / "file.json"), cwd=tmp_path)
    assert done.returncode == 5
    assert "error[RUN-022]" in done.stderr and "--out" in done.stderr


def pricing(aws: EmulatedAws) -> Any:
    own = aws.environment()
    return boto3.client(
        "pricing",
        endpoint_url=aws.endpoint,
        region_name="us-east-1",
        aws_access_key_id=own["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=own["AWS_SECRET_ACCESS_KEY"],
    )


def test_the_emulated_price_list_holds_what_a_careless_question_would_take(aws: EmulatedAws) -> None:
    asked = [{"Type": "TERM_MATCH", "Field": "instanceType", "Value": "m5.large"}]
    products = [json.loads(text) for text in pricing(aws).get_products(ServiceCode="AmazonEC2", Filters=asked)["PriceList"]]
    assert len(products) == 4
    result = {
        tuple(product["product"]["attributes"][name] for name in ("operatingSystem", "tenancy", "capacitystatus")) for product in products
    }
    assert ("Linux", "Shared", "Used") in result and ("Windows", "Shared", "Used") in result and len(result) == 4


def test_the_emulated_price_list_comes_in_pages(aws: EmulatedAws) -> None:
    first = pricing(aws).get_products(ServiceCode="AmazonEC2", MaxResults=10)
    assert len(first["PriceList"]) == 10
    second = pricing(aws).get_products(ServiceCode="AmazonEC2", MaxResults=10, NextToken=first["NextToken"])
    assert not set(first["PriceList"]) & set(second["PriceList"])


def test_the_emulated_price_list_refuses_what_it_does_not_know(aws: EmulatedAws) -> None:
    with pytest.raises(ClientError) as raised:
        pricing(aws).get_products(ServiceCode="AmazonLightsail")
    assert raised.value.response["Error"]["Code"] == "InvalidParameterException"
