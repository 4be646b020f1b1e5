from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.infra.errors import DaemonSetNotSized
from tests.infra.stacks.observed import Stack, environment, planned, synthesized


def _charts(folder: Path, **observability: Any) -> Stack:
    return synthesized(folder, environment(observability=observability))["observability-charts"]


def _manifests(stack: Stack, release: str) -> list[dict[str, Any]]:
    (values,) = stack["resource"]["helm_release"][release]["values"]
    parsed: list[dict[str, Any]] = json.loads(values.replace("$${", "${"))["manifests"]
    return parsed


def _file(stack: Stack, release: str, name: str) -> Any:
    (text,) = (manifest["data"][name] for manifest in _manifests(stack, release) if manifest["kind"] == "ConfigMap")
    return json.loads(text)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Stack:
    return _charts(tmp_path_factory.mktemp("charts"), openSearch={"domain": {}}, prometheus="workspace")


def test_there_are_two_releases_and_nothing_of_aws(whole: Stack) -> None:
    assert {kind: set(named) for kind, named in whole["resource"].items()} == {"helm_release": {"fluent-bit", "prometheus"}}
    assert set(whole["provider"]) == {"helm"}


def test_the_jobs_are_those_of_the_environment(whole: Stack) -> None:
    names = [job.name for job in planned(environment()).jobs]
    groups = [
        one["log_group_name"] for one in _file(whole, "fluent-bit", "fluent-bit.yaml")["pipeline"]["outputs"] if "log_group_name" in one
    ]
    karpenters = "${data.terraform_remote_state.cross-stack-reference-input-observability.outputs."
    karpenters += "cross-stack-output-aws_cloudwatch_log_groupkarpenter_nodesname}"
    assert groups == [*(f"/penstock/watched/jobs/{name}" for name in names), karpenters]
    drivers = _file(whole, "prometheus", "prometheus.yaml")["scrape_configs"][0]["static_configs"]
    assert [one["labels"]["penstock_job"] for one in drivers] == names


def test_what_the_aws_side_has_made_is_what_the_charts_use(whole: Stack) -> None:
    outputs = [one for one in _file(whole, "fluent-bit", "fluent-bit.yaml")["pipeline"]["outputs"] if one["name"] == "opensearch"]
    remote = "${data.terraform_remote_state.cross-stack-reference-input-observability.outputs."
    assert outputs
    assert {one["host"] for one in outputs} == {f"{remote}cross-stack-output-aws_opensearch_domainlogsendpoint}}"}
    (written,) = _file(whole, "prometheus", "prometheus.yaml")["remote_write"]
    assert written["url"] == f"{remote}cross-stack-output-aws_prometheus_workspacemetricsprometheus_endpoint}}api/v1/remote_write"


def test_the_pods_requests_are_those_that_the_environments_nodes_are_sized_with(whole: Stack) -> None:
    nodes = environment().spec.nodes
    assert nodes is not None
    (sized,) = (one for one in nodes.daemon_sets if one.name == "fluent-bit")
    (daemon_set,) = (manifest for manifest in _manifests(whole, "fluent-bit") if manifest["kind"] == "DaemonSet")
    requests = daemon_set["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]
    assert requests == {"cpu": f"{sized.cpu}m", "memory": f"{sized.memory}Mi"}


def test_an_environment_that_is_not_sized_with_it_is_refused(tmp_path: Path) -> None:
    data = environment().model_dump(by_alias=True, exclude_none=True)
    nodes = data["spec"]["nodes"]
    nodes["daemonSets"] = [one for one in nodes["daemonSets"] if one["name"] != "fluent-bit"]
    with pytest.raises(DaemonSetNotSized, match="every node"):
        synthesized(tmp_path, environment(nodes=nodes))


def test_an_endpoint_that_is_there_is_reached_at_its_port_and_signed_only_where_it_is_awss(tmp_path: Path) -> None:
    stack = _charts(tmp_path, openSearch={"endpoint": "https://search.example:9200/"})
    outputs = [one for one in _file(stack, "fluent-bit", "fluent-bit.yaml")["pipeline"]["outputs"] if one["name"] == "opensearch"]
    assert {(one["host"], one["port"], one.get("aws_auth")) for one in outputs} == {("search.example", 9200, None)}


def test_without_prometheus_there_is_none(tmp_path: Path) -> None:
    assert set(_charts(tmp_path, prometheus="none")["resource"]["helm_release"]) == {"fluent-bit"}
