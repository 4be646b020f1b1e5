from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.infra.environment import Environment
from penstock.infra.environment_file import load
from penstock.infra.errors import DriversDisturbed
from penstock.infra.karpenter_settings import FEATURE_GATES, Place, controller_values
from penstock.infra.parts.network import INTERFACE_ENDPOINTS
from penstock.infra.plans import plans
from penstock.sizing.errors import Infeasible
from penstock.sizing.placement.scenario import BATCH_IDLE_S, BATCH_MAX_S
from tests.infra.environments import Change, pool, read
from tests.infra.manifests.karpenter_crds import hold
from tests.infra.stacks.synthesized import CLUSTER, KARPENTER, NETWORK, Content, content

ROOT = Path(__file__).resolve().parents[3]
JOBS = ROOT / "jobs" / "specs"
PAGE = ROOT / "docs" / "stacks" / "karpenter.md"


def synthesized(folder: Path, environment: Environment) -> Content:
    from penstock.infra.stacks.karpenter_charts import KarpenterChartsStack

    environment_plans = plans(environment)

    def add(app: Any) -> object:
        return KarpenterChartsStack(app, environment, environment_plans, NETWORK, CLUSTER, KARPENTER)

    return content(folder, "karpenter-charts", add)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Content:
    """The stack of the production environment."""
    return synthesized(tmp_path_factory.mktemp("karpenter-charts"), load("production"))


@pytest.fixture
def with_job(tmp_path: Path) -> Callable[[dict[str, Any], Change | None], Content]:
    """The stack of a production environment with one job, whose spec differs from the shipped one."""
    count = iter(range(100))

    def made(changes: dict[str, Any], change: Change | None = None) -> Content:
        folder = tmp_path / str(next(count))
        folder.mkdir()
        document = yaml.safe_load((JOBS / "user_credit.yaml").read_text("utf-8"))
        document["spec"].update(changes)
        (folder / "job.yaml").write_text(yaml.safe_dump(document), "utf-8")

        def one_job(spec: dict[str, Any]) -> None:
            spec["jobs"] = ["job.yaml"]
            if change is not None:
                change(spec)

        (folder / "synth").mkdir()
        return synthesized(folder / "synth", read(folder, one_job))

    return made


def release(stack: Content, name: str) -> dict[str, Any]:
    helm_release: dict[str, Any] = stack["resource"]["helm_release"][name]
    return helm_release


def values(stack: Content, name: str) -> dict[str, Any]:
    (text,) = release(stack, name)["values"]
    parsed: dict[str, Any] = json.loads(text)
    return parsed


def manifests(stack: Content) -> dict[str, dict[str, Any]]:
    return {f"{one['kind']}/{one['metadata']['name']}": one for one in values(stack, "node-pools")["manifests"]}


def limits(stack: Content) -> dict[str, Any]:
    return {name: one["spec"].get("limits") for name, one in manifests(stack).items() if one["kind"] == "NodePool"}


def test_the_stack_is_of_kubernetes_alone(stack: Content) -> None:
    assert set(stack["provider"]) == {"helm"}
    assert set(stack["resource"]) == {"helm_release"}


def test_crds_then_the_controller_then_the_pools(stack: Content) -> None:
    assert set(stack["resource"]["helm_release"]) == {"karpenter-crd", "karpenter", "node-pools"}
    assert "depends_on" not in release(stack, "karpenter-crd")
    assert release(stack, "karpenter")["depends_on"] == ["helm_release.karpenter-crd"]
    assert release(stack, "node-pools")["depends_on"] == ["helm_release.karpenter"]


@pytest.mark.parametrize("name", ["karpenter-crd", "karpenter"])
def test_both_of_karpenters_charts_are_of_the_version_of_the_environment(stack: Content, name: str) -> None:
    chart = release(stack, name)
    assert (chart["repository"], chart["chart"], chart["version"]) == ("oci://public.ecr.aws/karpenter", name, "1.14.1")
    assert chart["namespace"] == "kube-system"


def test_crds_are_left_to_their_own_chart(stack: Content) -> None:
    """Helm installs the CRDs of a chart with templates once, and never updates them."""
    assert release(stack, "karpenter")["skip_crds"] is True


def test_the_controller_knows_its_cluster_and_its_queue(stack: Content) -> None:
    settings = values(stack, "karpenter")["settings"]
    assert settings["clusterName"] == "penstock-production"
    assert settings["interruptionQueue"] == "the-queue"
    assert settings["isolatedVPC"] is False
    assert values(stack, "karpenter")["controller"]["env"] == [{"name": "AWS_REGION", "value": "us-east-1"}]


def test_the_controller_does_what_the_sizing_takes_it_to_do(stack: Content) -> None:
    settings = values(stack, "karpenter")["settings"]
    assert (settings["batchIdleDuration"], settings["batchMaxDuration"]) == ("1s", "10s") == (f"{BATCH_IDLE_S:g}s", f"{BATCH_MAX_S:g}s")
    assert settings["vmMemoryOverheadPercent"] == 0.075
    assert settings["minValuesPolicy"] == "Strict"
    assert settings["featureGates"] == FEATURE_GATES


def test_the_nodes_volumes_are_as_fast_as_the_jobs_need(with_job: Callable[[dict[str, Any], Change | None], Content]) -> None:
    load = {"eventsPerSecond": 40_000, "eventBytes": 1000, "eventsPerSlot": 10_000}

    def volume(changes: dict[str, Any]) -> dict[str, Any]:
        ebs: dict[str, Any] = manifests(with_job(changes, None))["EC2NodeClass/default"]["spec"]["blockDeviceMappings"][0]["ebs"]
        return ebs

    assert "throughput" not in volume({})
    assert 125 < volume({"load": load, "parallelism": None})["throughput"] <= 1000


def test_settings_of_the_nodes_reach_the_controller(tmp_path: Path) -> None:
    def change(spec: dict[str, Any]) -> None:
        spec["nodes"].update(vmMemoryOverheadPercent=0.05, reservedEnis=1)
        spec["eks"]["systemNodes"] = {"min": 1, "max": 1}

    spec = read(tmp_path, change).spec
    assert spec.nodes and spec.eks
    made = controller_values(spec.nodes, spec.eks, Place("us-east-1", "c", "q", {}))
    assert made["settings"]["vmMemoryOverheadPercent"] == 0.05
    assert made["settings"]["reservedENIs"] == "1"
    # Two of them never share a node: the second would wait forever.
    assert made["replicas"] == 1


def test_the_controller_runs_on_the_system_nodes_and_never_on_its_own(stack: Content) -> None:
    made = values(stack, "karpenter")
    assert made["nodeSelector"] == {"kubernetes.io/os": "linux", "penstock.dev/role": "system"}
    # Those of the chart itself: no node of Karpenter's, one replica per node, the taint of the system nodes.
    assert not {"affinity", "tolerations"} & set(made)


def test_where_nothing_leaves_the_vpc_karpenter_asks_neither_iam_nor_for_prices(with_job: Callable[..., Content]) -> None:
    def change(spec: dict[str, Any]) -> None:
        spec["network"].update(natGateways=0, interfaceEndpoints=[*INTERFACE_ENDPOINTS, "ssm"])

    isolated = with_job({}, change)
    assert values(isolated, "karpenter")["settings"]["isolatedVPC"] is True
    machines = manifests(isolated)["EC2NodeClass/default"]
    assert machines["spec"]["instanceProfile"] == "the-node-role"
    assert "role" not in machines["spec"]
    hold(machines)


def test_two_controllers_with_bounded_memory(stack: Content) -> None:
    made = values(stack, "karpenter")
    assert made["replicas"] == 2
    assert made["controller"]["resources"]["limits"] == made["controller"]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize("name", ["production", "dev"])
def test_every_object_of_a_shipped_environment_is_one_by_its_crd(tmp_path: Path, name: str) -> None:
    objects = manifests(synthesized(tmp_path, load(name)))
    assert set(objects) == {"EC2NodeClass/default", "NodePool/drivers", "NodePool/executors"}
    for manifest in objects.values():
        hold(manifest)


def test_nodes_get_the_role_of_the_aws_side_and_the_environments_tags(stack: Content) -> None:
    spec = manifests(stack)["EC2NodeClass/default"]["spec"]
    assert spec["role"] == "the-node-role"
    assert spec["tags"] == {"penstock:environment": "production", "team": "data-platform"}
    assert spec["subnetSelectorTerms"] == [{"id": "subnet-0123456789abcdef0"}, {"id": "subnet-0123456789abcdef1"}]
    assert spec["securityGroupSelectorTerms"] == [{"id": "sg-0123456789abcdef0"}]


def test_drivers_are_on_demand_and_stay_and_executors_come_as_spot_over_many_types(stack: Content) -> None:
    drivers, executors = (manifests(stack)[f"NodePool/{name}"]["spec"] for name in ("drivers", "executors"))

    def required(spec: dict[str, Any]) -> dict[str, list[str]]:
        return {one["key"]: one["values"] for one in spec["template"]["spec"]["requirements"]}

    assert required(drivers)["karpenter.sh/capacity-type"] == ["on-demand"]
    assert drivers["template"]["spec"]["expireAfter"] == "Never"
    assert drivers["disruption"]["consolidationPolicy"] == "WhenEmpty"
    assert {"nodes": "0", "reasons": ["Underutilized", "Drifted"]} in drivers["disruption"]["budgets"]
    assert required(executors)["karpenter.sh/capacity-type"] == ["spot", "on-demand"]
    assert required(executors)["karpenter.k8s.aws/instance-category"] == ["c", "m", "r"]


def test_dev_takes_graviton_too(tmp_path: Path) -> None:
    executors = manifests(synthesized(tmp_path, load("dev")))["NodePool/executors"]["spec"]["template"]["spec"]
    assert {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64", "arm64"]} in executors["requirements"]


def test_the_shipped_pools_get_their_limits_from_the_plans_of_the_jobs_as_the_page_says(stack: Content) -> None:
    pool_limits = limits(stack)
    assert set(pool_limits) == {"NodePool/drivers", "NodePool/executors"}
    page = PAGE.read_text("utf-8")
    for name, amounts in pool_limits.items():
        pattern = rf"\| `{name.removeprefix('NodePool/')}` \|.*\| `cpu: {amounts['cpu']}`, `memory: {amounts['memory']}` \|"
        assert re.search(pattern, page)


def test_more_parallelism_means_higher_limits(with_job: Callable[..., Content]) -> None:
    few, more = limits(with_job({"parallelism": 10})), limits(with_job({"parallelism": 20}))
    assert int(few["NodePool/executors"]["cpu"]) < int(more["NodePool/executors"]["cpu"])
    assert few["NodePool/drivers"] == more["NodePool/drivers"]


def test_a_plan_that_can_not_be_met_stops_the_synth_with_the_sizings_own_error(with_job: Callable[..., Content]) -> None:
    with pytest.raises(Infeasible) as raised:
        with_job({"parallelism": 40})
    assert raised.value.code == "SIZ-015"


def test_limits_of_the_environment_win(with_job: Callable[..., Content]) -> None:
    def change(spec: dict[str, Any]) -> None:
        pool(spec, "executors")["limits"] = {"cpu": "1000", "memory": "8000Gi"}

    assert limits(with_job({}, change))["NodePool/executors"] == {"cpu": "1000", "memory": "8000Gi"}


def test_an_environment_without_jobs_starts_no_node(with_job: Callable[..., Content]) -> None:
    assert set(map(str, limits(with_job({}, lambda spec: spec.update(jobs=[]))).values())) == {"{'cpu': '0', 'memory': '0Gi'}"}


def test_a_pool_that_would_take_drivers_away_stops_the_synth(with_job: Callable[..., Content]) -> None:
    def change(spec: dict[str, Any]) -> None:
        pool(spec, "drivers")["expireAfter"] = "720h"

    with pytest.raises(DriversDisturbed):
        with_job({}, change)
