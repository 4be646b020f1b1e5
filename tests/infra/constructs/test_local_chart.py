from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from penstock.infra.constructs.local_chart import CHART, values
from penstock.infra.environment_file import load
from tests.infra.stacks.synthesized import CLUSTER, Content, content

TEMPLATE = "{{ .Values.secret }} ${HOME} %{ if } $${x} 100%"
MANIFEST: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "one", "namespace": "two"},
    "data": {"t": TEMPLATE},
}


@pytest.fixture(scope="module")
def synthesized(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Content]:
    """A stack with two releases, and its folder."""
    folder = tmp_path_factory.mktemp("charts")

    def add(app: Any) -> None:
        from penstock.infra.constructs.charts_stack import ChartsStack
        from penstock.infra.constructs.local_chart import LocalChart

        stack = ChartsStack(app, "some-charts", load("production"), CLUSTER)
        first = LocalChart(stack, "one", name="one", namespace="kube-system", manifests=[MANIFEST])
        LocalChart(stack, "two", name="two", namespace="kube-system", manifests=[], wait=False, timeout_s=5, depends_on=[first.release])

    return folder / "stacks/some-charts", content(folder, "some-charts", add)


def test_the_stack_is_of_kubernetes_alone(synthesized: tuple[Path, Content]) -> None:
    _, stack = synthesized
    assert set(stack["provider"]) == {"helm"}
    assert set(stack["resource"]) == {"helm_release"}


def test_a_token_is_asked_for_when_it_is_needed_and_is_nowhere_in_the_stack(synthesized: tuple[Path, Content]) -> None:
    _, stack = synthesized
    (provider,) = stack["provider"]["helm"]
    assert set(provider["kubernetes"]) == {"host", "cluster_ca_certificate", "exec"}
    assert provider["kubernetes"]["exec"] == {
        "api_version": "client.authentication.k8s.io/v1beta1",
        "command": "aws",
        "args": ["eks", "get-token", "--cluster-name", "the-cluster", "--region", "us-east-1", "--output", "json"],
    }


def test_the_chart_lies_once_in_the_stacks_folder_and_no_path_of_this_machine_is_named(synthesized: tuple[Path, Content]) -> None:
    folder, stack = synthesized
    charts = {release["chart"] for release in stack["resource"]["helm_release"].values()}
    (chart,) = charts
    assert chart.startswith("./assets/")
    assert (folder / chart / "templates/manifests.yaml").read_text() == (CHART / "templates/manifests.yaml").read_text()
    assert str(CHART) not in json.dumps(stack["resource"])


def test_the_charts_folder_is_named_by_its_content_wherever_it_lies(synthesized: tuple[Path, Content], tmp_path: Path) -> None:
    def add(app: Any) -> None:
        from penstock.infra.constructs.charts_stack import ChartsStack
        from penstock.infra.constructs.local_chart import LocalChart

        LocalChart(ChartsStack(app, "other-charts", load("production"), CLUSTER), "x", name="x", namespace="kube-system", manifests=[])

    other = content(tmp_path, "other-charts", add)["resource"]["helm_release"]["x"]["chart"]
    assert other == synthesized[1]["resource"]["helm_release"]["one"]["chart"]


def test_a_release_that_fails_leaves_no_half_behind(synthesized: tuple[Path, Content]) -> None:
    releases = synthesized[1]["resource"]["helm_release"]
    assert (releases["one"]["atomic"], releases["one"]["wait"], releases["one"]["timeout"]) == (True, True, 600)
    assert (releases["two"]["atomic"], releases["two"]["wait"], releases["two"]["timeout"]) == (False, False, 5)
    assert releases["two"]["depends_on"] == ["helm_release.one"]
    assert all(release["create_namespace"] is False for release in releases.values())


def test_what_looks_like_an_expression_of_terraforms_stays_text(synthesized: tuple[Path, Content]) -> None:
    (text,) = synthesized[1]["resource"]["helm_release"]["one"]["values"]
    assert "$${HOME} %%{ if } $$${x} 100%" in text
    assert json.loads(_as_terraform_reads_it(text)) == {"manifests": [MANIFEST]}


def _as_terraform_reads_it(text: str) -> str:
    """Source: Terraform, "Strings and Templates": $${ and %%{ are ${ and %{."""
    return re.sub(r"\$\$\{|%%\{", lambda match: match.group()[1:], text)


def test_a_value_of_another_stack_is_left_for_cdktf_to_fill_in() -> None:
    token = "${TfToken[TOKEN.7]}"
    assert token in values([{**MANIFEST, "data": {"brokers": token}}])


def test_the_charts_schema_takes_objects_and_refuses_what_is_none() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    jsonschema.validate({"manifests": [MANIFEST]}, schema)
    jsonschema.validate(yaml.safe_load((CHART / "values.yaml").read_text()), schema)
    wrongs: tuple[dict[str, Any], ...] = ({"manifests": [{"kind": "ConfigMap"}]}, {"manifests": {}}, {}, {"manifests": [], "manifest": []})
    for wrong in wrongs:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)
