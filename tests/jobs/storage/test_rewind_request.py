"""The request of a rewind on an emulated S3, as an operator writes and a driver reads it."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from penstock.jobs.spec.initial_offsets import InitialOffsets
from penstock.jobs.storage.errors import CheckpointDamaged
from penstock.jobs.storage.rewind_request import NamedStart, RewindRequest, RewindRequestFile
from tests.jobs.storage.conftest import BUCKET
from tests.jobs.storage.faulty_s3 import FaultyS3

pytestmark = pytest.mark.emulated

ASKED = datetime(2026, 11, 26, 10, 0, tzinfo=UTC)
ONE = RewindRequest(after=1, to=7, asked=ASKED, by="arn:aws:iam::1:user/a")
OTHER = RewindRequest(after=1, back_to=3, spec_rewind_to=5, asked=ASKED)


@pytest.fixture
def file(faulty: FaultyS3) -> RewindRequestFile:
    return RewindRequestFile(f"s3a://{BUCKET}/{uuid.uuid4().hex[:8]}")


def test_a_request_is_read_as_it_was_written_and_another_one_replaces_it(file: RewindRequestFile) -> None:
    assert file.read() is None
    assert file.replace(None, ONE)
    assert file.read() == ONE
    assert file.replace(ONE, OTHER)
    assert file.read() == OTHER
    # Somebody else's stays.
    file.withdraw(ONE)
    assert file.read() == OTHER
    file.withdraw(OTHER)
    assert file.read() is None


def test_a_request_that_somebody_else_has_made_meanwhile_is_not_replaced(file: RewindRequestFile) -> None:
    assert file.replace(None, ONE)
    assert not file.replace(None, OTHER)
    assert not file.replace(OTHER, OTHER)
    assert file.read() == ONE


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '{"after": 1, "to": 7, "asked": "2026-11-26T10:00:00Z", "keepState": true}',
        '{"after": 1, "to": "middle", "asked": "2026-11-26T10:00:00Z"}',
    ],
)
def test_what_a_driver_does_not_understand_it_refuses(file: RewindRequestFile, text: str) -> None:
    file.put_once("rewind.json", text)
    with pytest.raises(CheckpointDamaged) as raised:
        file.read()
    assert (raised.value.code, raised.value.path) == ("JOB-008", f"{file.uri}/penstock/rewind.json")


@pytest.mark.parametrize("to", ["earliest", "latest", "spec"])
def test_a_request_may_name_where_it_begins(file: RewindRequestFile, to: NamedStart) -> None:
    request = ONE.model_copy(update={"to": to})
    assert file.replace(None, request)
    assert file.read() == request


@pytest.mark.parametrize("both", [{}, {"to": 7, "back_to": 1}])
def test_a_request_goes_to_a_time_or_back(both: dict[str, int]) -> None:
    with pytest.raises(ValidationError, match="exactly one of to, backTo and startFrom"):
        RewindRequest(after=1, asked=ASKED, **both)


@pytest.mark.parametrize("offsets", ["savepointTime", 1_764_000_000_000, {"clicks": {0: 5, 1: -1}}])
def test_a_start_from_a_savepoint_may_say_where_it_reads_on(file: RewindRequestFile, offsets: InitialOffsets) -> None:
    plain = RewindRequest(after=1, start_from="s3a://b/j/savepoints/one", asked=ASKED)
    request = plain.model_copy(update={"offsets": offsets})
    assert file.replace(None, request)
    assert file.read() == request and request.same_as(file.read()) and not plain.same_as(request)
    with pytest.raises(ValidationError, match="offsets only with startFrom"):
        RewindRequest(after=1, to=7, offsets=offsets, asked=ASKED)


def test_a_request_has_nothing_that_it_does_not_ask_for(file: RewindRequestFile) -> None:
    """An earlier release refuses fields that it does not know."""
    assert file.replace(None, ONE)
    assert {"offsets", "startFrom", "backTo"}.isdisjoint(json.loads(file.get("rewind.json") or ""))


def test_the_same_is_asked_by_another_person_at_another_time() -> None:
    assert ONE.same_as(ONE.model_copy(update={"by": "b", "asked": datetime.now(UTC)}))
    assert not ONE.same_as(OTHER) and not ONE.same_as(None) and not ONE.same_as(ONE.model_copy(update={"after": 2}))
