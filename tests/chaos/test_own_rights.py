"""Every pipeline that is shipped, under its own role: S3, KMS, Secrets Manager and Kafka deny what the role's statements don't allow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.infra.environment_file import load as load_environment
from penstock.infra.policies import Statement
from penstock.jobs.spec import load
from penstock.scripts.layout import ROOT
from penstock.scripts.local.checking import check
from penstock.scripts.local.environment import LocalEnvironment
from penstock.sizing.errors import PenstockError
from tests.emulated.conftest import local
from tests.restricted_run import Rights, job_of, restricted_run, run_to_its_end

__all__ = ["local"]
SPECS = ROOT / "jobs/specs"


@pytest.fixture(scope="module")
def of_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEnvironment]:
    """One for all pipelines, each of which has a folder and a broker of its own."""
    with LocalEnvironment(load_environment("local"), folder=tmp_path_factory.mktemp("local"), aws_port=0, kafka_port=0) as environment:
        yield environment


@pytest.mark.timeout(900)
@pytest.mark.parametrize("spec", sorted(SPECS.glob("*.yaml")), ids=lambda spec: spec.stem)
def test_a_pipeline_is_denied_nothing(spec: Path, of_all: LocalEnvironment, tmp_path: Path) -> None:
    with restricted_run(job_of(spec), of_all, tmp_path) as (one, rights):
        run_to_its_end(one)
        assert rights.denied() == []
        asked = {asked.action for asked in rights.aws.asked}
        assert asked >= {"s3:PutObject", "s3:ListBucket", "kms:GenerateDataKey", "kms:Decrypt"}
        assert _operations(rights) >= _of_kafka(spec)
        _, verdict = check(one, one.steps)
    assert verdict.compared and not verdict.differences


def _operations(rights: Rights) -> set[str]:
    return {f"{operation} {kind}" for operation, kind, _ in rights.broker.decided("ALLOWED")}


def _of_kafka(spec: Path) -> set[str]:
    """What its brokers must have been asked."""
    job = load(spec).job.spec
    # Side outputs have rows only if the input has some that are rejected, or late.
    read, written = bool(job.kafka_sources), bool(job.kafka_sinks.keys() - {"errors", "late"})
    return {*(["READ TOPIC"] * read), *(["WRITE TOPIC"] * written)}


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("spec", "without", "code", "denied"),
    [
        ("keyword_lines", "ReadInput", "JOB-003", "s3:GetObject"),
        ("error_logs", "UseKeyByS3", "JOB-009", "kms:GenerateDataKey"),
        ("error_logs", "ReadOwnSecrets", "JOB-052", "secretsmanager:GetSecretValue"),
        ("error_logs", "ReadOwnTopics", "JOB-125", "DESCRIBE TOPIC"),
        ("error_logs", "WriteOwnTopics", "JOB-125", "DESCRIBE TOPIC"),
    ],
)
def test_a_job_with_one_statement_less_fails(
    local: LocalEnvironment, tmp_path: Path, spec: str, without: str, code: str, denied: str
) -> None:
    def fewer(granted: list[Statement]) -> list[Statement]:
        return [statement for statement in granted if statement["Sid"] != without]

    with restricted_run(job_of(SPECS / f"{spec}.yaml"), local, tmp_path, fewer) as (one, rights):
        with pytest.raises(PenstockError) as raised:
            run_to_its_end(one)
        by_kafka = {f"{operation} {kind}" for operation, kind, _ in rights.broker.decided("DENIED", "HIDDEN")}
        assert raised.value.code == code, raised.value.render()
        assert denied in {action.action for action in rights.aws.denied} | by_kafka
