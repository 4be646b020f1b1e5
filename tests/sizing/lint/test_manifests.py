"""Rules on Kubernetes objects as written."""

from __future__ import annotations

import pytest

from penstock.sizing.lint.manifests import ALIAS, HTTP_TOKENS
from penstock.sizing.lint.subject import LintedManifest, Subject
from tests.sizing.lint.worlds import found, subject


def written(kind: str = "NodePool", api_version: str = "karpenter.sh/v1", **more: object) -> Subject:
    return subject(manifests=(LintedManifest.model_validate({"kind": kind, "api_version": api_version, "name": "a", **more}),))


def test_a_field_that_the_api_server_drops_is_found_with_where_it_went() -> None:
    (finding,) = found("LINT-015", written(unknown=("spec.disruption.expireAfter",)))
    assert (finding.severity, finding.fix) == ("error", "move it to spec.template.spec.expireAfter")
    (finding,) = found("LINT-015", written(unknown=("spec.anything",)))
    assert finding.fix == "remove it, or move it to where Karpenter 1.14 expects it"
    assert found("LINT-015", written()) == []


def test_a_value_that_is_rejected_is_found_with_what_is_allowed() -> None:
    (finding,) = found("LINT-016", written(refused={"spec.weight": "at most 100"}))
    assert (finding.given, finding.need) == ("NodePool a: spec.weight", "at most 100")
    assert found("LINT-016", written()) == []


@pytest.mark.parametrize(
    ("kind", "api_version", "fires"),
    [
        ("NodePool", "karpenter.sh/v1", False),
        ("NodePool", "karpenter.sh/v1beta1", True),
        ("Provisioner", "karpenter.sh/v1alpha5", True),
        ("EC2NodeClass", "karpenter.k8s.aws/v1", False),
        ("EC2NodeClass", "karpenter.k8s.aws/v1beta1", True),
        ("AWSNodeTemplate", "karpenter.k8s.aws/v1alpha1", True),
        ("Deployment", "apps/v1", False),
    ],
)
def test_an_object_of_an_older_version_is_found(kind: str, api_version: str, fires: bool) -> None:
    assert bool(found("LINT-017", written(kind, api_version))) is fires


@pytest.mark.parametrize(
    ("alias", "fires"), [("al2023@latest", True), ("bottlerocket@latest", True), ("al2023@v20260901", False), (None, False)]
)
def test_a_node_image_that_changes_by_itself_is_found(alias: str | None, fires: bool) -> None:
    assert bool(found("LINT-018", written("EC2NodeClass", properties={ALIAS: alias} if alias else {}))) is fires


@pytest.mark.parametrize(("tokens", "fires"), [("optional", True), ("required", False), (None, False)])
def test_metadata_without_a_token_is_found(tokens: str | None, fires: bool) -> None:
    assert bool(found("LINT-019", written("EC2NodeClass", properties={HTTP_TOKENS: tokens} if tokens else {}))) is fires
