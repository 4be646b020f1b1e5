from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.infra.constructs.provider import SERVICES
from penstock.infra.errors import NameTooLong
from penstock.infra.interruptions import EVENTS
from penstock.infra.manifests import fluent_bit, prometheus
from penstock.infra.parts.observability import Alarms, OpenSearch
from penstock.infra.stacks.observability import SPOT_INTERRUPTION_RULE
from penstock.scripts.layout import ROOT
from tests.infra.stacks.observed import Outputs, Stack, environment, synthesized
from tests.infra.stacks.synthesized import of_cluster

JOBS = ("flights", "user-credit")
SNAPSHOT = Path(__file__).parent / "snapshots/observability.json"
BUDGET = {"monthlyUsd": 500.0, "emails": ["money@example.com"]}
WATCHED = {"alarms": {"emails": ["ops@example.com"]}, "openSearch": {"domain": {}}, "prometheus": "workspace"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Stack:
    """With all options of an environment."""
    return synthesized(tmp_path_factory.mktemp("whole"), environment(observability=WATCHED, budget=BUDGET))["observability"]


@pytest.fixture(scope="module")
def least(tmp_path_factory: pytest.TempPathFactory) -> Stack:
    """Without a cluster and without options."""
    return synthesized(tmp_path_factory.mktemp("least"), environment(observability={}, budget=None, protect=False), cluster=False)[
        "observability"
    ]


def _all(stack: Stack, kind: str) -> dict[str, Any]:
    resources: dict[str, Any] = stack["resource"].get(kind, {})
    return resources


def _statements(text: str) -> dict[str, dict[str, Any]]:
    return {statement["Sid"]: statement for statement in json.loads(text)["Statement"]}


def test_each_job_has_a_log_group_with_the_environments_retention_and_the_stacks_key(whole: Stack) -> None:
    groups = {name: group for name, group in _all(whole, "aws_cloudwatch_log_group").items() if name in JOBS}
    assert set(groups) == set(JOBS)
    for job, group in groups.items():
        assert group["name"] == f"/penstock/watched/jobs/{job}"
        assert group["retention_in_days"] == 30
        assert group["kms_key_id"] == "${aws_kms_key.key.arn}"


def test_every_log_group_is_encrypted_and_kept_for_a_time(whole: Stack) -> None:
    for group in _all(whole, "aws_cloudwatch_log_group").values():
        assert group["kms_key_id"] == "${aws_kms_key.key.arn}"
        assert group["retention_in_days"] == 30


def test_a_job_that_the_environment_drops_does_not_stop_a_deploy(whole: Stack) -> None:
    assert not [name for name, group in _all(whole, "aws_cloudwatch_log_group").items() if "lifecycle" in group]


def test_metrics_are_read_from_the_jobs_own_group_with_the_job_as_their_dimension(whole: Stack) -> None:
    filters = _all(whole, "aws_cloudwatch_log_metric_filter")
    of_jobs = {f"{job}-{metric}" for job in JOBS for metric in ("LagRecords", "FailedBatches", "Starts")}
    assert set(filters) == of_jobs | {"pool-limits"}
    for name, metric_filter in ((name, one) for name, one in filters.items() if name in of_jobs):
        job = name.rpartition("-")[0]
        assert metric_filter["log_group_name"] == f"${{aws_cloudwatch_log_group.{job}.name}}"
        transformation = metric_filter["metric_transformation"]
        assert transformation["namespace"] == "Penstock/watched"
        assert transformation["dimensions"] == {"Job": "$.job"}
        assert "default_value" not in transformation, "CloudWatch takes no default beside a dimension"


def test_every_alarm_notifies_when_it_begins_and_when_it_ends(whole: Stack) -> None:
    alarms = _all(whole, "aws_cloudwatch_metric_alarm")
    kinds = {f"{job}-{kind}" for job in JOBS for kind in ("lag", "failed", "restarts", "silent")}
    assert set(alarms) == kinds | {"interruptions", "interruptions-unread", "pods-pending", "pool-limits"}
    for name, alarm in alarms.items():
        assert alarm["alarm_actions"] == alarm["ok_actions"] == ["${aws_sns_topic.alarms.arn}"]
        assert alarm["alarm_name"] == f"penstock-watched-{name}"
        assert alarm["treat_missing_data"] in ("breaching", "notBreaching", "ignore")


def test_an_alarm_watches_a_metric_that_is_written(whole: Stack) -> None:
    written = {metric_filter["metric_transformation"]["name"] for metric_filter in _all(whole, "aws_cloudwatch_log_metric_filter").values()}
    for name, alarm in _all(whole, "aws_cloudwatch_metric_alarm").items():
        if alarm["namespace"] == "Penstock/watched":
            assert alarm["metric_name"] in written
            assert alarm.get("dimensions") == (None if name == "pool-limits" else {"Job": name.rpartition("-")[0]})


def test_pods_without_a_node_are_counted_by_eks_and_told_after_three_starts_of_a_node(whole: Stack) -> None:
    alarm = _all(whole, "aws_cloudwatch_metric_alarm")["pods-pending"]
    assert (alarm["namespace"], alarm["metric_name"], alarm["statistic"]) == ("AWS/EKS", "scheduler_pending_pods", "Sum")
    assert alarm["dimensions"] == {"ClusterName": Outputs().cluster_name}
    # 3 * (10 s of batching and 60 s of `boot`), in whole minutes.
    assert (alarm["period"], alarm["evaluation_periods"], alarm["threshold"]) == (60, 4, 0)
    assert "`penstock doctor`, with environment watched," in alarm["alarm_description"]


def test_what_a_pools_limits_refuse_is_read_from_karpenters_own_group(whole: Stack) -> None:
    metric_filter = _all(whole, "aws_cloudwatch_log_metric_filter")["pool-limits"]
    assert metric_filter["log_group_name"] == "${aws_cloudwatch_log_group.karpenter_nodes.name}"
    assert _all(whole, "aws_cloudwatch_log_group")["karpenter_nodes"]["name"] == "/penstock/watched/karpenter"
    transformation = metric_filter["metric_transformation"]
    alarm = _all(whole, "aws_cloudwatch_metric_alarm")["pool-limits"]
    assert (transformation["namespace"], transformation["name"]) == (alarm["namespace"], alarm["metric_name"])
    assert "limitHeadroom" in alarm["alarm_description"]


def test_every_alarm_of_the_nodes_names_a_section_of_the_runbook(whole: Stack) -> None:
    for name in ("pods-pending", "pool-limits"):
        description = _all(whole, "aws_cloudwatch_metric_alarm")[name]["alarm_description"]
        page, _, section = description.rpartition(" ")[2].partition("#")
        assert f"\n## {section}\n" in (ROOT / page).read_text(encoding="utf-8").lower().replace(page.lower(), page)
        # Source: CloudWatch API reference, PutMetricAlarm: AlarmDescription.
        assert len(description) <= 1024


def test_interruptions_are_watched_at_karpenters_rule_and_queue(whole: Stack) -> None:
    alarms = _all(whole, "aws_cloudwatch_metric_alarm")
    assert SPOT_INTERRUPTION_RULE in EVENTS
    assert alarms["interruptions"]["dimensions"] == {"RuleName": f"penstock-watched-{SPOT_INTERRUPTION_RULE}"}
    assert alarms["interruptions-unread"]["dimensions"] == {"QueueName": Outputs().interruption_queue}


def test_the_alarms_topic_is_encrypted_and_takes_alarms_of_this_account_over_tls_alone(whole: Stack) -> None:
    assert _all(whole, "aws_sns_topic")["alarms"]["kms_master_key_id"] == "${aws_kms_key.key.arn}"
    statements = _statements(_all(whole, "aws_sns_topic_policy")["alarms-policy"]["policy"])
    assert set(statements) == {"Alarms", "TlsOnly"}
    assert statements["Alarms"]["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert statements["Alarms"]["Condition"] == {"StringEquals": {"aws:SourceAccount": "111122223333"}}
    assert statements["TlsOnly"]["Effect"] == "Deny"
    assert statements["TlsOnly"]["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    (subscription,) = _all(whole, "aws_sns_topic_subscription").values()
    assert (subscription["protocol"], subscription["endpoint"]) == ("email", "ops@example.com")


def test_the_key_is_for_this_environments_logs_and_this_accounts_alarms(whole: Stack) -> None:
    statements = _statements(_all(whole, "aws_kms_key")["key"]["policy"])
    services = {next(iter(one["Principal"].values())): one["Condition"] for one in statements.values() if "Condition" in one}
    logs = "logs.us-east-1.${data.aws_partition.partition.dns_suffix}"
    group = "arn:${data.aws_partition.partition.partition}:logs:us-east-1:111122223333:log-group:/penstock/watched/*"
    assert services == {
        logs: {"ArnEquals": {"kms:EncryptionContext:aws:logs:arn": [group]}},
        "cloudwatch.amazonaws.com": {"StringEquals": {"aws:SourceAccount": "111122223333"}},
    }


def test_fluent_bit_may_write_to_the_jobs_groups_and_to_the_domains_bulk_interface_and_nothing_else(whole: Stack) -> None:
    statements = _statements(_all(whole, "aws_iam_role_policy")["fluent-bit"]["policy"])
    assert set(statements) == {"JobLogs", "JobIndexes"}
    assert statements["JobLogs"]["Action"] == ["logs:CreateLogStream", "logs:PutLogEvents"]
    assert statements["JobLogs"]["Resource"] == [
        f"${{aws_cloudwatch_log_group.{group}.arn}}:log-stream:*" for group in (*JOBS, "karpenter_nodes")
    ]
    assert statements["JobIndexes"]["Action"] == ["es:ESHttpPost"]
    assert statements["JobIndexes"]["Resource"] == ["${aws_opensearch_domain.logs.arn}/_bulk"]


def test_prometheus_may_write_to_the_workspace_and_nothing_else(whole: Stack) -> None:
    statements = _statements(_all(whole, "aws_iam_role_policy")["prometheus"]["policy"])
    assert set(statements) == {"RemoteWrite"}
    assert statements["RemoteWrite"]["Action"] == ["aps:RemoteWrite"]
    assert statements["RemoteWrite"]["Resource"] == ["${aws_prometheus_workspace.metrics.arn}"]


def test_roles_are_for_the_pods_of_one_service_account_of_this_accounts_cluster(whole: Stack) -> None:
    associations = _all(whole, "aws_eks_pod_identity_association")
    taken = {name: (one["namespace"], one["service_account"]) for name, one in associations.items()}
    assert taken == {
        "fluent-bit-identity": (fluent_bit.NAMESPACE, fluent_bit.SERVICE_ACCOUNT),
        "prometheus-identity": (prometheus.NAMESPACE, prometheus.SERVICE_ACCOUNT),
    }
    for role in _all(whole, "aws_iam_role").values():
        (trust,) = json.loads(role["assume_role_policy"])["Statement"]
        assert trust["Principal"] == {"Service": "pods.eks.amazonaws.com"}
        assert trust["Condition"] == of_cluster("watched")


def test_the_domain_is_in_the_vpc_encrypted_and_over_tls_1_2_alone(whole: Stack) -> None:
    domain = _all(whole, "aws_opensearch_domain")["logs"]
    assert domain["encrypt_at_rest"] == {"enabled": True, "kms_key_id": "${aws_kms_key.key.arn}"}
    assert domain["node_to_node_encryption"] == {"enabled": True}
    assert domain["domain_endpoint_options"] == {"enforce_https": True, "tls_security_policy": "Policy-Min-TLS-1-2-PFS-2023-10"}
    assert domain["vpc_options"]["subnet_ids"] == list(Outputs().private_subnet_ids)
    (rule,) = _all(whole, "aws_vpc_security_group_ingress_rule").values()
    assert (rule["referenced_security_group_id"], rule["from_port"], rule["to_port"]) == (Outputs().node_security_group_ids[0], 443, 443)
    assert domain["lifecycle"] == {"prevent_destroy": True}


def test_the_domain_leaves_it_to_iam_who_may_use_it(whole: Stack) -> None:
    (statement,) = json.loads(_all(whole, "aws_opensearch_domain_policy")["logs"]["access_policies"])["Statement"]
    assert statement["Principal"] == {"AWS": "arn:${data.aws_partition.logs-account-partition.partition}:iam::111122223333:root"}
    assert statement["Action"] == "es:ESHttp*"


@pytest.mark.parametrize(("instances", "zones", "masters"), [(1, None, False), (2, 2, False), (3, 3, True), (6, 3, True)])
def test_the_domain_is_spread_over_the_zones_that_it_has_nodes_for(
    tmp_path: Path, instances: int, zones: int | None, masters: bool
) -> None:
    asked = {"openSearch": {"domain": {"instances": instances}}}
    domain = _all(synthesized(tmp_path, environment(observability=asked))["observability"], "aws_opensearch_domain")["logs"]
    config = domain["cluster_config"]
    assert len(domain["vpc_options"]["subnet_ids"]) == (zones or 1)
    assert config["zone_awareness_enabled"] is (zones is not None)
    assert config.get("zone_awareness_config") == ({"availability_zone_count": zones} if zones else None)
    assert config["dedicated_master_enabled"] is masters


def test_a_name_that_no_domain_can_have_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(NameTooLong, match="at most 19 characters"):
        synthesized(tmp_path, environment("a-name-of-twenty-char", observability={"openSearch": {"domain": {}}}))


def test_a_domain_that_is_there_is_written_to_if_its_arn_is_known(tmp_path: Path) -> None:
    arn = "arn:aws:es:us-east-1:111122223333:domain/logs"
    asked = {"openSearch": {"endpoint": "https://logs.example:9200/", "domainArn": arn}}
    stack = synthesized(tmp_path, environment(observability=asked))["observability"]
    statements = _statements(_all(stack, "aws_iam_role_policy")["fluent-bit"]["policy"])
    assert statements["JobIndexes"]["Resource"] == [f"{arn}/_bulk"]
    assert stack["output"]["open_search_endpoint"]["value"] == "logs.example:9200"
    assert not _all(stack, "aws_opensearch_domain")


def test_the_budget_is_over_what_carries_the_environments_tag(whole: Stack) -> None:
    budget = _all(whole, "aws_budgets_budget")["budget"]
    assert (budget["limit_amount"], budget["limit_unit"], budget["time_unit"]) == ("500.00", "USD", "MONTHLY")
    assert budget["cost_filter"] == [{"name": "TagKeyValue", "values": ["user:penstock:environment$watched"]}]
    thresholds = {(one["notification_type"], one["threshold"]) for one in budget["notification"]}
    assert thresholds == {("FORECASTED", 80), ("ACTUAL", 100)}
    for one in budget["notification"]:
        assert one["subscriber_email_addresses"] == BUDGET["emails"]


def test_what_is_not_asked_for_is_not_made(least: Stack) -> None:
    kinds = set(least["resource"])
    assert kinds == {
        "aws_cloudwatch_log_group",
        "aws_cloudwatch_log_metric_filter",
        "aws_cloudwatch_metric_alarm",
        "aws_kms_key",
        "aws_sns_topic",
        "aws_sns_topic_policy",
    }
    assert set(least["output"]) == {"alarm_topic_arn", "log_group"}


def test_the_stack_gives_what_the_charts_take(whole: Stack) -> None:
    assert {name: output["value"] for name, output in whole["output"].items() if not name.startswith("cross-stack")} == {
        "log_group": "/penstock/watched/jobs",
        "karpenter_log_group": "${aws_cloudwatch_log_group.karpenter_nodes.name}",
        "fluent_bit_role_arn": "${aws_iam_role.fluent-bit.arn}",
        "open_search_endpoint": "${aws_opensearch_domain.logs.endpoint}",
        "prometheus_endpoint": "${aws_prometheus_workspace.metrics.prometheus_endpoint}",
        "alarm_topic_arn": "${aws_sns_topic.alarms.arn}",
    }


# The provider's service names where they differ from the prefix of the resources' names. Source: its documentation, "Custom Service
# Endpoints".
SERVICE_OF = {"cloudwatch_log": "logs", "cloudwatch_metric": "cloudwatch", "prometheus": "amp", "security": "ec2", "vpc": "ec2"}


def test_every_service_of_the_stack_is_asked_at_an_emulator(whole: Stack) -> None:
    for kind in whole["resource"]:
        words = kind.removeprefix("aws_")
        service = next((service for start, service in SERVICE_OF.items() if words.startswith(start)), words.split("_")[0])
        assert service in SERVICES, kind


def test_no_construct_has_moved(whole: Stack) -> None:
    """Terraform identifies a resource by its address: a resource whose address changes is replaced, and its contents are lost."""
    paths = {
        f"{kind}.{name}": resource["//"]["metadata"]["path"]
        for kind, named in whole["resource"].items()
        for name, resource in named.items()
    }
    assert paths == json.loads(SNAPSHOT.read_text())


@pytest.mark.parametrize("silent", ["90s", "25h", "0m"])
def test_a_silence_that_cloudwatch_has_no_period_for_is_refused(silent: str) -> None:
    with pytest.raises(ValueError, match="silent"):
        Alarms.model_validate({"silent": silent})


@pytest.mark.parametrize(
    "asked",
    [{}, {"domain": {}, "endpoint": "https://a.example"}, {"domain": {}, "domainArn": "arn:aws:es:us-east-1:111122223333:domain/a"}],
)
def test_logs_are_searched_in_one_place(asked: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="domain"):
        OpenSearch.model_validate(asked)
