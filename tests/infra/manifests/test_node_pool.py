from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from infra.environment import Environment, load, names
from infra.manifests.daemon_set import daemon_set
from infra.manifests.node_pool import duration, node_pool

CRDS = Path(__file__).resolve().parents[4] / "shared" / "crds"


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    """The schema of Karpenter's NodePool, from its own CRD."""
    file = CRDS / "karpenter.sh_nodepools.yaml"
    if not file.is_file():
        reason = f"the CRDs of Karpenter are not in {CRDS.name}/ beside the checkout"
        if os.environ.get("PENSTOCK_REQUIRE_ALL") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    crd = yaml.safe_load(file.read_text(encoding="utf-8"))
    found: dict[str, Any] = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    closed: dict[str, Any] = _closed(found)
    return closed


def _closed(schema: Any) -> Any:
    """A copy that takes no field that the CRD does not name: the API server drops such a field without a word."""
    if isinstance(schema, list):
        return [_closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and schema["properties"] and schema.get("type") == "object":
        closed.setdefault("additionalProperties", False)
    return closed


def _pools() -> list[Any]:
    environments: list[Environment] = [load(name) for name in names()]
    return [pytest.param(pool, id=f"{one.name}-{pool.name}") for one in environments if one.spec.nodes for pool in one.spec.nodes.pools]


@pytest.mark.parametrize("pool", _pools())
def test_every_shipped_pool_is_a_node_pool_by_its_crd(pool: Any, schema: dict[str, Any]) -> None:
    manifest = node_pool(pool)
    manifest_less_metadata = {key: value for key, value in manifest.items() if key != "metadata"}
    jsonschema.validate({**manifest_less_metadata, "metadata": {}}, schema)


def test_the_guard_refuses_a_field_that_the_crd_does_not_have(schema: dict[str, Any]) -> None:
    environment = load("production")
    assert environment.spec.nodes
    manifest = node_pool(environment.spec.nodes.pools[0])
    manifest["spec"]["disruption"]["consolidateNever"] = True
    with pytest.raises(jsonschema.ValidationError, match="consolidateNever"):
        jsonschema.validate({**manifest, "metadata": {}}, schema)


def test_a_pool_carries_what_the_environment_says_of_it() -> None:
    environment = load("production")
    assert environment.spec.nodes
    executors = next(pool for pool in environment.spec.nodes.pools if pool.name == "executors")
    spec = node_pool(executors)["spec"]
    assert spec["weight"] == 1
    assert spec["limits"] == {"cpu": "1000", "memory": "8000Gi"}
    assert spec["template"]["metadata"]["labels"] == {"penstock.dev/role": "executor"}
    assert spec["template"]["spec"]["taints"] == [{"key": "penstock.dev/role", "value": "executor", "effect": "NoSchedule"}]
    assert spec["template"]["spec"]["expireAfter"] == "720h"
    assert spec["disruption"] == {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "5m", "budgets": [{"nodes": "10%"}]}


@pytest.mark.parametrize(
    ("ms", "text"), [(300_000, "5m"), (2_592_000_000, "720h"), (90_000, "90s"), (1_500, "1500ms"), ("Never", "Never"), (3_600_000, "1h")]
)
def test_durations_are_written_as_go_reads_them(ms: int | str, text: str) -> None:
    assert duration(ms) == text


def test_a_daemon_set_has_its_requests_and_tolerates_every_taint_by_default() -> None:
    environment = load("production")
    assert environment.spec.nodes
    csi = next(one for one in environment.spec.nodes.daemon_sets if one.name == "ebs-csi-node")
    pod = daemon_set(csi)["spec"]["template"]["spec"]
    assert pod["containers"][0]["resources"]["requests"] == {"cpu": "30m", "memory": "104Mi"}
    assert pod["tolerations"] == [{"operator": "Exists"}]
    assert "nodeSelector" not in pod
