"""A job gets the connections that its spec names: its driver as URLs without credentials, its role as the permission to read them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.infra.environment import Environment
from penstock.infra.errors import ConnectionNotGiven, ConnectionOfAnotherKind
from penstock.infra.job_connections import connections_of, ports, refuse_unknown_connections, secrets, secrets_of, urls
from penstock.infra.job_rights import Buckets, statements
from penstock.infra.manifests.config_map import config_map
from penstock.infra.manifests.network_policy import network_policies
from penstock.infra.plans import plans
from penstock.jobs.spec import load
from penstock.sizing.errors import Faults
from tests.infra.environments import read
from tests.infra.iam_evaluation import allowed
from tests.infra.manifests.jobs_in_cluster import deployed

SPECS = Path(__file__).resolve().parents[2] / "jobs/specs"
SECRET = "arn:aws:secretsmanager:us-east-1:111122223333:secret:{}-AbCdEf"
KEY = "arn:aws:kms:us-east-1:111122223333:key/of-secrets"
BANK = {
    "kind": "postgres",
    "url": "postgresql://bank.example:6432/accounts?sslmode=verify-full",
    "secret": SECRET.format("bank"),
    "key": KEY,
}
ALERTS = {"kind": "http", "secret": SECRET.format("alerts")}
CREDIT = {"kind": "http", "url": "https://credit.example:8443"}
OTHER = {"kind": "redis", "url": "rediss://cache.example/0", "secret": SECRET.format("other")}
BUCKETS = Buckets(
    checkpoints_arn="arn:aws:s3:::c", output_arn="arn:aws:s3:::o", output="o", key_arn="arn:aws:kms:k", service="s3.us-east-1.amazonaws.com"
)


def environment(folder: Path, connections: dict[str, Any], **changes: Any) -> Environment:
    """A production environment with one job that writes a table, posts alerts and calls the credit service."""
    document = yaml.safe_load((SPECS / "user_credit.yaml").read_text("utf-8"))
    document["spec"]["sinks"]["bank"] = {"postgres": {"connection": "bank", "table": "credits", "key": ["id"]}}
    document["spec"]["sinks"]["alerts"] = {"webhook": {"connection": "alerts"}}
    document["spec"].update(changes)
    (folder / "job.yaml").write_text(yaml.safe_dump(document), "utf-8")

    def change(spec: dict[str, Any]) -> None:
        spec["jobs"], spec["connections"] = ["job.yaml"], {"credit-service": CREDIT, **connections}

    return read(folder, change)


def test_a_job_gets_the_connections_that_it_names_and_no_credentials(tmp_path: Path) -> None:
    where = environment(tmp_path, {"bank": BANK, "alerts": ALERTS, "other": OTHER})
    (job,) = plans(where).jobs
    refuse_unknown_connections([job], where)
    given = connections_of(job.spec, where)
    assert urls(given) == {"bank": BANK["url"], "credit-service": CREDIT["url"]}
    assert secrets(given) == {"bank": BANK["secret"], "alerts": ALERTS["secret"]}
    assert ports(given) == (443, 6432, 8443)
    runs = deployed(connections=urls(given), secrets=secrets(given), connection_ports=ports(given))
    runtime = json.loads(config_map(runs)["data"]["runtime.json"])
    assert (runtime["connections"], runtime["secrets"]) == (urls(given), secrets(given))
    outside = network_policies(runs)[-1]["spec"]["egress"][1]["ports"]
    assert {port["port"] for port in outside} >= {443, 6432, 8443}


def test_its_role_reads_its_own_secrets_and_uses_their_key_by_secrets_manager_alone(tmp_path: Path) -> None:
    where = environment(tmp_path, {"bank": BANK, "alerts": ALERTS, "other": OTHER})
    (job,) = plans(where).jobs
    rights = statements(job.spec, BUCKETS, None, secrets_of(job.spec, where))
    for name, may in {"bank": True, "alerts": True, "other": False}.items():
        assert allowed(rights, "secretsmanager:GetSecretValue", SECRET.format(name), {}) is may
    by_secrets_manager = {
        "kms:ViaService": "secretsmanager.us-east-1.amazonaws.com",
        "kms:EncryptionContext:SecretARN": SECRET.format("bank"),
    }
    assert allowed(rights, "kms:Decrypt", KEY, by_secrets_manager)
    assert not allowed(rights, "kms:Decrypt", KEY, by_secrets_manager | {"kms:ViaService": "s3.us-east-1.amazonaws.com"})
    assert not allowed(rights, "kms:Decrypt", KEY, by_secrets_manager | {"kms:EncryptionContext:SecretARN": SECRET.format("other")})
    assert not any("secretsmanager" in action for statement in statements(job.spec, BUCKETS, None) for action in statement["Action"])


def test_a_job_with_topics_reads_the_secret_of_the_brokers(tmp_path: Path) -> None:
    secret = SECRET.format("kafka")
    kafka = {"kind": "external", "bootstrapServers": "b:9096", "security": "sasl-scram", "secret": secret, "key": KEY}
    where = environment(tmp_path, {"bank": BANK, "alerts": ALERTS})
    where = read(tmp_path, lambda spec: spec.update(yaml.safe_load(where.text())["spec"], kafka=kafka))
    (job,) = plans(where).jobs
    rights = statements(job.spec, BUCKETS, None, secrets_of(job.spec, where))
    by_secrets_manager = {"kms:ViaService": "secretsmanager.us-east-1.amazonaws.com", "kms:EncryptionContext:SecretARN": secret}
    assert allowed(rights, "secretsmanager:GetSecretValue", secret, {}) and allowed(rights, "kms:Decrypt", KEY, by_secrets_manager)
    runs = deployed(kafka_security="sasl-scram", kafka_secret=secret)
    runtime = json.loads(config_map(runs)["data"]["runtime.json"])
    assert (runtime["kafkaSecurity"], runtime["kafkaSecret"]) == ("sasl-scram", secret)
    # One without topics has nothing to do with them.
    document = yaml.safe_load((SPECS / "keyword_lines.yaml").read_text("utf-8"))
    document["spec"]["sinks"]["errors"] = {"console": {}}
    (tmp_path / "files.yaml").write_text(yaml.safe_dump(document), "utf-8")
    assert secrets_of(load(tmp_path / "files.yaml"), where) == {}


def test_a_job_whose_connections_the_environment_does_not_have_is_refused_with_the_lines(tmp_path: Path) -> None:
    where = environment(tmp_path, {"alerts": {"kind": "redis", "url": "rediss://cache.example/0"}})
    with pytest.raises(Faults) as raised:
        refuse_unknown_connections(plans(where).jobs, where)
    unknown, other = sorted(raised.value.errors, key=lambda fault: fault.code)
    assert isinstance(unknown, ConnectionNotGiven) and isinstance(other, ConnectionOfAnotherKind)
    assert (unknown.path, unknown.given) == ("spec.sinks.bank.postgres.connection", "bank")
    assert unknown.need == "a connection of the environment production: credit-service, alerts"
    assert (other.path, other.need) == (
        "spec.sinks.alerts.webhook.connection",
        "a connection of kind http; in the environment production it is redis",
    )
    assert unknown.at is not None and other.at is not None and unknown.at.line != other.at.line
