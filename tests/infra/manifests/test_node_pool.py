from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest

from penstock.infra.environment import Environment
from penstock.infra.environment_file import load, names
from penstock.infra.manifests.daemon_set import daemon_set
from penstock.infra.manifests.node_pool import duration, node_pool
from tests.infra.environments import pool, read
from tests.infra.manifests.karpenter_crds import hold


def _pools() -> list[Any]:
    environments: list[Environment] = [load(name) for name in names()]
    return [pytest.param(pool, id=f"{one.name}-{pool.name}") for one in environments if one.spec.nodes for pool in one.spec.nodes.pools]


@pytest.mark.parametrize("shipped", _pools())
def test_every_shipped_pool_is_a_node_pool_by_its_crd(shipped: Any) -> None:
    hold(node_pool(shipped))
    hold(node_pool(shipped, {"cpu": "0", "memory": "0Gi"}))


def test_the_guard_refuses_a_field_that_the_crd_does_not_have() -> None:
    environment = load("production")
    assert environment.spec.nodes
    manifest = node_pool(environment.spec.nodes.pools[0])
    manifest["spec"]["disruption"]["consolidateNever"] = True
    with pytest.raises(jsonschema.ValidationError, match="consolidateNever"):
        hold(manifest)


def test_a_pool_carries_what_the_environment_says_of_it() -> None:
    environment = load("production")
    assert environment.spec.nodes
    executors = next(pool for pool in environment.spec.nodes.pools if pool.name == "executors")
    spec = node_pool(executors)["spec"]
    assert spec["weight"] == 1
    assert "limits" not in spec
    assert spec["template"]["metadata"]["labels"] == {"penstock.dev/role": "executor"}
    assert spec["template"]["spec"]["taints"] == [{"key": "penstock.dev/role", "value": "executor", "effect": "NoSchedule"}]
    assert spec["template"]["spec"]["expireAfter"] == "720h"
    assert spec["disruption"] == {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "5m", "budgets": [{"nodes": "10%"}]}


def test_limits_are_for_a_pool_that_has_none_of_its_own(tmp_path: Path) -> None:
    def change(spec: dict[str, Any]) -> None:
        pool(spec, "drivers")["limits"] = {"cpu": "64", "memory": "256Gi"}

    nodes = read(tmp_path, change).spec.nodes
    assert nodes
    drivers, executors = (node_pool(one, {"cpu": "8", "memory": "64Gi"})["spec"]["limits"] for one in nodes.pools)
    assert drivers == {"cpu": "64", "memory": "256Gi"}
    assert executors == {"cpu": "8", "memory": "64Gi"}


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
