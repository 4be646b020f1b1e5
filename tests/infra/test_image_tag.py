from __future__ import annotations

from pathlib import Path

import pytest

from penstock.infra.environment_file import load
from penstock.infra.errors import BadImageTag, ImageTagOfUnknownJob
from penstock.infra.image_tag import VARIABLE, image_tags
from penstock.sizing.errors import PenstockError
from tests.infra.environments import read

JOBS = ("user-credit", "flights")


@pytest.fixture(autouse=True)
def _no_pipeline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)


def test_the_environment_names_the_image() -> None:
    assert image_tags(load("production"), JOBS) == {"user-credit": "0.1.0", "flights": "0.1.0"}


@pytest.mark.parametrize(
    ("variable", "user_credit", "flights"),
    [
        ("", "0.1.0", "0.2.0"),
        ("1.4.2-9f2c1ab", "1.4.2-9f2c1ab", "0.2.0"),
        ("user-credit=1.5", "1.5", "0.2.0"),
        ("flights=1.5", "0.1.0", "1.5"),
        ("flights=1.5,1.4", "1.4", "1.5"),
    ],
)
def test_a_jobs_own_tag_comes_first_and_the_variable_before_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, user_credit: str, flights: str
) -> None:
    monkeypatch.setenv(VARIABLE, variable)
    environment = read(tmp_path, lambda spec: spec.update(registry={"imageTag": "0.1.0", "imageTags": {"flights": "0.2.0"}}))
    assert image_tags(environment, JOBS) == {"user-credit": user_credit, "flights": flights}


@pytest.mark.parametrize("tag", ["-1", "a b", "x" * 129, "repo:1", "ä", "flights=", "=1", ",", "1,2", "flights=1,flights=2"])
def test_an_invalid_tag_is_reported(monkeypatch: pytest.MonkeyPatch, tag: str) -> None:
    monkeypatch.setenv(VARIABLE, tag)
    with pytest.raises(PenstockError) as raised:
        image_tags(load("production"), JOBS)
    faults = raised.value.errors
    assert {type(fault) for fault in faults} == {BadImageTag}
    assert all(fault.path == VARIABLE and str(fault.given) in tag for fault in faults)


def test_tags_of_jobs_that_the_environment_does_not_have_are_reported_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "usercredit=1.4.2")
    environment = read(tmp_path, lambda spec: spec.update(registry={"imageTags": {"fligths": "0.2.0"}}))
    with pytest.raises(PenstockError) as raised:
        image_tags(environment, JOBS)
    of_variable, of_file = raised.value.errors
    assert isinstance(of_variable, ImageTagOfUnknownJob) and isinstance(of_file, ImageTagOfUnknownJob)
    assert (of_variable.path, of_variable.given) == (VARIABLE, "usercredit")
    assert of_file.at is not None and of_file.at.line
    assert of_file.need == "a job of the environment: flights, user-credit"


@pytest.mark.parametrize("tags", [{"flights": "-1"}, {"flights": 1.5}, {"Not a name": "1"}, ["flights"]])
def test_an_invalid_tag_in_the_environment_is_reported_with_its_line(tmp_path: Path, tags: object) -> None:
    with pytest.raises(PenstockError) as raised:
        read(tmp_path, lambda spec: spec.update(registry={"imageTags": tags}))
    assert all(fault.at is not None and fault.at.line for fault in raised.value.errors)
