"""``penstock place`` with Kubernetes objects, as manifests and as a cluster returns them."""

from __future__ import annotations

import contextlib
import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.jobs.document import Document
from penstock.scripts.planning.kubernetes_object import KubernetesObject
from penstock.scripts.planning.kubernetes_scenario import scenario_of
from penstock.sizing.catalog.allocatable import NodeSettings
from penstock.sizing.errors import PenstockError
from tests.scripts.cli.called import Called, penstock
from tests.scripts.cli.test_place import ROOT
from tests.sizing.placement.test_properties import paths

NODE_POOL = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: web}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
        - {key: karpenter.k8s.aws/instance-family, operator: In, values: [m6i]}
        - {key: karpenter.k8s.aws/instance-cpu, operator: In, values: ["4"]}
"""
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: topology.kubernetes.io/zone
          whenUnsatisfiable: DoNotSchedule
          labelSelector: {matchLabels: {app: web}}
      containers:
        - name: web
          image: web
          resources: {requests: {cpu: "1", memory: 2Gi}}
"""


def written(folder: Path, name: str, *documents: str) -> str:
    path = folder / name
    path.write_text("---".join(documents), "utf-8")
    return str(path)


def place(*words: str) -> Called:
    return penstock("place", *words)


def listed(*objects: dict[str, Any]) -> str:
    """A List as kubectl writes it."""
    return "\n" + yaml.safe_dump({"apiVersion": "v1", "items": list(objects), "kind": "List", "metadata": {"resourceVersion": ""}})


def changed(text: str, **fields: Any) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(text)
    return {**document, **fields}


def live_pod(name: str, node: str = "", phase: str = "Running", **metadata: Any) -> dict[str, Any]:
    """A pod of the Deployment, as a cluster returns it."""
    template: dict[str, Any] = yaml.safe_load(DEPLOYMENT)["spec"]["template"]
    owner = {"apiVersion": "apps/v1", "blockOwnerDeletion": True, "controller": True, "kind": "ReplicaSet", "name": "web-6d4b", "uid": "1"}
    token = {"name": f"kube-api-access-{name}", "projected": {"defaultMode": 420, "sources": []}}
    scheduled = {"nodeName": node} if node else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "generateName": "web-6d4b-",
            "namespace": "default",
            "creationTimestamp": "2026-11-25T01:00:00Z",
            "labels": {"app": "web", "pod-template-hash": "6d4b"},
            "ownerReferences": [owner],
            "uid": name,
            **metadata,
        },
        "spec": {**template["spec"], **scheduled, "volumes": [token], "schedulerName": "default-scheduler", "restartPolicy": "Always"},
        "status": {"phase": phase},
    }


def live_node(name: str, zone: str, **labels: str) -> dict[str, Any]:
    known = {
        "karpenter.sh/nodepool": "web",
        "karpenter.sh/capacity-type": "on-demand",
        "node.kubernetes.io/instance-type": "m6i.xlarge",
        "topology.kubernetes.io/zone": zone,
    }
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {**known, **labels}}, "spec": {}, "status": {}}


def errors(done: Called) -> list[dict[str, Any]]:
    assert done.returncode == 2
    found: list[dict[str, Any]] = json.loads(done.stdout)["errors"]
    return found


SOME: list[Any] = [None, [], {}, "", "x", -1, 0, 10**30, 1.5, float("nan"), True, [None], [{}], {"a": 1}, {"a": None}]
JUNK = st.sampled_from(SOME)
NODE_CLASS = {"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "default"}, "spec": {}}
VOLUMES = [{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "20Gi"}}]
CLASS_SPEC = {"amiSelectorTerms": [{"alias": "al2023@v1"}], "kubelet": {"maxPods": 9}, "blockDeviceMappings": VOLUMES}
EVERYTHING: list[Any] = [
    yaml.safe_load(NODE_POOL),
    yaml.safe_load(DEPLOYMENT),
    {**NODE_CLASS, "spec": CLASS_SPEC},
    live_node("n", "us-east-1a"),
    live_pod("web-1", "n"),
    live_pod("other", ownerReferences=[{"kind": "Job", "name": "j", "controller": True}]),
    changed(DEPLOYMENT, kind="Job", apiVersion="batch/v1", status={"conditions": [{"type": "Suspended", "status": "True"}]}),
]


@given(st.randoms(use_true_random=False), JUNK, st.booleans())
@settings(max_examples=150, derandomize=True, deadline=None)
def test_objects_with_anything_anywhere_are_read_or_refused_with_a_code(random: Any, junk: Any, drop: bool) -> None:
    objects = copy.deepcopy(EVERYTHING)
    path = random.choice(paths(objects))
    at: Any = objects
    for key in path[:-1]:
        at = at[key]
    if drop:
        del at[path[-1]]
    else:
        at[path[-1]] = junk
    document = Document(file="any.yaml", text="", data={"kind": "List", "items": objects}, places={})
    items = [KubernetesObject(document, ("items", index), 1) for index in range(len(objects)) if isinstance(objects[index], dict)]
    with contextlib.suppress(PenstockError):
        scenario_of(items, NodeSettings(), ["m6i.xlarge"], 0.4)


def test_the_objects_of_a_file_are_placed_together_and_spread_over_zones(tmp_path: Path) -> None:
    done = place(written(tmp_path, "web.yaml", NODE_POOL, DEPLOYMENT))
    assert (done.returncode, done.stderr) == (0, "")
    assert "web: 3 new nodes, from 0.5760 USD/h with the cheapest types" in done.stdout
    assert all(f"1 web  us-east-1{zone}" in done.stdout for zone in "abc")


def test_objects_of_several_files_are_one_scenario(tmp_path: Path) -> None:
    apart = place(written(tmp_path, "pools.yaml", NODE_POOL), written(tmp_path, "apps.yaml", DEPLOYMENT), "-o", "json")
    together = place(written(tmp_path, "all.yaml", NODE_POOL, DEPLOYMENT), "-o", "json")
    assert json.loads(apart.stdout) == json.loads(together.stdout)


def test_json_of_kubernetes_is_read_too(tmp_path: Path) -> None:
    as_json = json.dumps({"apiVersion": "v1", "kind": "List", "items": [yaml.safe_load(NODE_POOL), yaml.safe_load(DEPLOYMENT)]}, indent=4)
    done = place(written(tmp_path, "all.json", as_json), "-o", "json")
    assert len(json.loads(done.stdout)["node_claims"]) == 3
    broken = place(written(tmp_path, "bad.json", as_json.replace('"replicas": 3', '"replicas": -3')), "-o", "json")
    line = next(number for number, text in enumerate(as_json.splitlines(), 1) if '"replicas"' in text)
    assert [(error["line"], error["given"]) for error in errors(broken)] == [(line, "-3")]


def test_a_scenario_may_be_yaml_and_its_errors_have_their_lines(tmp_path: Path) -> None:
    scenario = f"nodePools:\n  - {json.dumps(yaml.safe_load(NODE_POOL))}\npods:\n  - count: 2\n    pod:\n      metadata: {{name: g}}\n"
    spec = '      spec: {containers: [{name: c, resources: {requests: {cpu: "1"}}}]}\n'
    assert json.loads(place(written(tmp_path, "good.yaml", scenario, ""), "-o", "json").stdout)["errors"][0]["line"] == 5
    done = place(written(tmp_path, "good.yaml", scenario + spec), "-o", "json")
    assert [claim["pods"] for claim in json.loads(done.stdout)["node_claims"]] == [{"g": 2}]


def test_kubectls_output_comes_through_the_standard_input() -> None:
    text = listed(yaml.safe_load(NODE_POOL), live_node("n", "us-east-1a"), live_pod("web-1", "n"), live_pod("web-2", phase="Pending"))
    command = [sys.executable, "-m", "penstock.scripts", "place", "-", "-o", "json"]
    done = subprocess.run(command, cwd=ROOT, input=text, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    # The node has room, but a pod of the same label runs in its zone.
    assert json.loads(done.stdout)["existing_nodes"] == {}
    assert [claim["pods"] for claim in json.loads(done.stdout)["node_claims"]] == [{"web": 1}]


def test_pods_that_run_count_in_their_zones_and_workloads_count_by_their_pods(tmp_path: Path) -> None:
    objects = [yaml.safe_load(NODE_POOL), yaml.safe_load(DEPLOYMENT), live_node("n", "us-east-1a"), live_node("m", "us-east-1b")]
    pods = [live_pod("web-1", "n"), live_pod("web-2", "m"), live_pod("web-3", phase="Pending"), live_pod("old", "n", phase="Succeeded")]
    done = place(written(tmp_path, "cluster.yaml", listed(*objects, *pods)), "--explain", "-o", "json")
    document = json.loads(done.stdout)
    assert [(claim["pods"], claim["zones"]) for claim in document["node_claims"]] == [({"web": 1}, ["us-east-1c"])]


def test_a_node_has_its_own_labels(tmp_path: Path) -> None:
    rule = DEPLOYMENT.replace("topology.kubernetes.io/zone", "example.com/rack")
    slots = "      requirements:\n        - {key: example.com/rack, operator: In, values: [a, b]}"
    pool = NODE_POOL.replace("      requirements:", slots)
    objects = [yaml.safe_load(pool), yaml.safe_load(rule), live_node("n", "us-east-1a", **{"example.com/rack": "b"})]
    pods = [live_pod("web-1", "n"), live_pod("web-2", phase="Pending", labels={"app": "web", "pod-template-hash": "6d4b"})]
    pods[1]["spec"]["topologySpreadConstraints"] = objects[1]["spec"]["template"]["spec"]["topologySpreadConstraints"]
    done = place(written(tmp_path, "cluster.yaml", listed(*objects, *pods)), "-o", "json")
    assert (json.loads(done.stdout)["existing_nodes"], len(json.loads(done.stdout)["node_claims"])) == ({}, 1)


def test_pods_of_daemon_sets_and_on_nodes_that_are_not_given_are_left_out(tmp_path: Path) -> None:
    agent = live_pod("agent-x", "n", ownerReferences=[{"kind": "DaemonSet", "name": "agent", "controller": True}])
    objects = [yaml.safe_load(NODE_POOL), agent, live_pod("web-1", "elsewhere"), live_pod("web-2", phase="Pending")]
    done = place(written(tmp_path, "cluster.yaml", listed(*objects)), "-o", "json")
    assert done.stderr == "skipped: 1 pod on a node that is not given; add its Node to count it\n"
    assert [claim["pods"] for claim in json.loads(done.stdout)["node_claims"]] == [{"web": 1}]


@pytest.mark.parametrize(
    ("kind", "api_version", "spec", "count"),
    [
        ("StatefulSet", "apps/v1", {"replicas": 2}, 2),
        ("Deployment", "apps/v1", {}, 1),
        ("Job", "batch/v1", {"parallelism": 5, "completions": 2}, 2),
        ("Job", "batch/v1", {"parallelism": 2, "suspend": True}, 0),
        ("ReplicaSet", "apps/v1", {"replicas": 0}, 0),
    ],
)
def test_each_workload_has_its_number_of_pods(tmp_path: Path, kind: str, api_version: str, spec: dict[str, Any], count: int) -> None:
    template = yaml.safe_load(DEPLOYMENT)["spec"]["template"]
    workload = changed(DEPLOYMENT, kind=kind, apiVersion=api_version, spec={**spec, "template": template})
    done = place(written(tmp_path, "workload.yaml", listed(yaml.safe_load(NODE_POOL), workload)), "-o", "json")
    assert done.returncode == 0, done.stdout
    assert sum(claim["pods"].get("web", 0) for claim in json.loads(done.stdout)["node_claims"]) == count


def test_a_job_that_has_ended_asks_for_no_pods(tmp_path: Path) -> None:
    template = yaml.safe_load(DEPLOYMENT)["spec"]["template"]
    status = {"conditions": [{"type": "Complete", "status": "True"}]}
    job = changed(DEPLOYMENT, kind="Job", apiVersion="batch/v1", spec={"template": template}, status=status)
    done = place(written(tmp_path, "job.yaml", listed(yaml.safe_load(NODE_POOL), job)), "-o", "json")
    assert json.loads(done.stdout)["node_claims"] == []


def test_objects_without_effect_are_named_and_skipped(tmp_path: Path) -> None:
    service = "\napiVersion: v1\nkind: Service\nmetadata: {name: web}\n"
    done = place(written(tmp_path, "web.yaml", NODE_POOL, DEPLOYMENT, service), "-o", "json")
    assert (done.returncode, done.stderr) == (0, "skipped, without effect on the placement: 1 Service\n")


def test_an_unknown_kind_is_refused_with_its_document_and_line(tmp_path: Path) -> None:
    file = written(tmp_path, "web.yaml", NODE_POOL, "\napiVersion: example.com/v1\nkind: Rollout\nmetadata: {name: web}\n", DEPLOYMENT)
    (error,) = errors(place(file, "-o", "json"))
    assert (error["code"], error["file"], error["line"], error["path"]) == ("SIZ-021", file, 15, "Rollout web (document 2): kind")
    assert "NodePool, EC2NodeClass, Node, DaemonSet, Deployment" in error["need"]


def test_the_errors_of_all_objects_come_at_once_with_document_item_and_line(tmp_path: Path) -> None:
    bad = changed(DEPLOYMENT)
    bad["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["memory"] = "2 Gi"
    bad["spec"]["template"]["spec"]["topologySpreadConstraints"][0]["maxSkew"] = 0
    node_pool = NODE_POOL.replace("operator: In, values: [m6i]", "operator: Is, values: [m6i]")
    file = written(tmp_path, "web.yaml", node_pool, listed(bad))
    lines = Path(file).read_text("utf-8").splitlines()
    found = [(error["path"].partition(": ")[0], lines[error["line"] - 1].strip()) for error in errors(place(file, "-o", "json"))]
    assert found == [
        ("NodePool web (document 1)", "- {key: karpenter.k8s.aws/instance-family, operator: Is, values: [m6i]}"),
        ("Deployment web (document 2, item 1)", "memory: 2 Gi"),
        ("Deployment web (document 2, item 1)", "maxSkew: 0"),
    ]


@pytest.mark.parametrize(
    ("change", "code", "need"),
    [
        ({"apiVersion": "karpenter.sh/v1beta1"}, "SIZ-020", "karpenter.sh/v1"),
        ({"metadata": {}}, "SIZ-020", "metadata.name"),
        ({"kind": None}, "SIZ-020", "a Kubernetes object with apiVersion and kind"),
    ],
)
def test_an_object_that_cannot_be_read_is_refused(tmp_path: Path, change: dict[str, Any], code: str, need: str) -> None:
    (error,) = errors(place(written(tmp_path, "pool.yaml", listed(changed(NODE_POOL, **change))), "-o", "json"))
    assert (error["code"], error["need"]) == (code, need)


def test_an_object_that_is_given_twice_is_refused_with_the_line_of_the_first(tmp_path: Path) -> None:
    file = written(tmp_path, "web.yaml", NODE_POOL, DEPLOYMENT, DEPLOYMENT)
    (error,) = errors(place(file, "-o", "json"))
    assert (error["path"], error["need"]) == ("Deployment web (document 3)", f"each object once; this one is also at {file}:14")


def test_without_a_nodepool_there_is_nothing_to_place_on(tmp_path: Path) -> None:
    (error,) = errors(place(written(tmp_path, "web.yaml", DEPLOYMENT), "-o", "json"))
    assert (error["path"], error["need"]) == ("NodePool", "at least one NodePool")


def test_a_nodepool_names_an_ec2nodeclass_that_is_given(tmp_path: Path) -> None:
    node_class = "\napiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: other}\nspec: {amiFamily: AL2023}\n"
    (error,) = errors(place(written(tmp_path, "web.yaml", NODE_POOL, DEPLOYMENT, node_class), "-o", "json"))
    assert (error["code"], error["given"], error["line"]) == ("SIZ-024", '"default"', 8)


def test_the_settings_of_an_ec2nodeclass_hold(tmp_path: Path) -> None:
    node_class = "\napiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: default}\nspec:\n  kubelet: {maxPods: 1}\n"
    pods = DEPLOYMENT.replace("topology.kubernetes.io/zone", "kubernetes.io/hostname").replace("maxSkew: 1", "maxSkew: 3")
    done = place(written(tmp_path, "web.yaml", NODE_POOL, pods, node_class), "-o", "json")
    assert [claim["pods"] for claim in json.loads(done.stdout)["node_claims"]] == [{"web": 1}] * 3
    reserved = node_class.replace("{maxPods: 1}", "{systemReserved: {cpu: 1}}")
    (error,) = errors(place(written(tmp_path, "web.yaml", NODE_POOL, pods, reserved), "-o", "json"))
    assert (error["code"], error["path"]) == ("SIZ-021", "EC2NodeClass default (document 3): spec.kubelet.systemReserved")


@pytest.mark.parametrize(
    ("node", "code"),
    [
        (live_node("n", "us-east-1a", **{"karpenter.sh/nodepool": "gone"}), "SIZ-024"),
        (live_node("n", "us-east-1a", **{"node.kubernetes.io/instance-type": "m99.large"}), "SIZ-024"),
        ({**live_node("n", "us-east-1a"), "spec": {"unschedulable": True}}, "SIZ-021"),
        ({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {}}}, "SIZ-021"),
    ],
)
def test_a_node_that_is_not_of_a_given_nodepool_is_refused(tmp_path: Path, node: dict[str, Any], code: str) -> None:
    (error,) = errors(place(written(tmp_path, "nodes.yaml", listed(yaml.safe_load(NODE_POOL), node)), "-o", "json"))
    assert (error["code"], error["path"].partition(":")[0]) == (code, "Node n (document 1, item 2)")
    assert error["line"] > 20


def test_workloads_of_one_name_have_their_namespace_in_the_name_of_the_group(tmp_path: Path) -> None:
    other = changed(DEPLOYMENT, metadata={"name": "web", "namespace": "other"})
    done = place(written(tmp_path, "web.yaml", NODE_POOL, DEPLOYMENT, listed(other)), "-o", "json")
    groups = {group for claim in json.loads(done.stdout)["node_claims"] for group in claim["pods"]}
    assert groups == {"default/web", "other/web"}


def test_spot_prices_follow_the_share_that_is_given(tmp_path: Path) -> None:
    file = written(tmp_path, "web.yaml", NODE_POOL.replace("[on-demand]", "[spot]"), DEPLOYMENT)
    assert "no spot price is known" in place(file).stdout
    assert "from 0.2304 USD/h" in place(file, "--spot-ratio", "0.4").stdout
    assert place(file, "--spot-ratio", "-1").returncode == 2


def test_a_share_for_scenarios_is_wrong_usage(tmp_path: Path) -> None:
    scenario = {"nodePools": [yaml.safe_load(NODE_POOL)], "pods": []}
    (error,) = errors(place(written(tmp_path, "s.json", json.dumps(scenario)), "--spot-ratio", "0.4", "-o", "json"))
    assert error["code"] == "USE-001"


@pytest.mark.parametrize(
    ("text", "code"), [("a: [", "SPEC-002"), ("a: 1\na: 2\n", "SPEC-003"), ("# nothing\n", "USE-010"), ("- 1\n", "USE-010")]
)
def test_a_file_that_is_no_yaml_of_objects_is_refused(tmp_path: Path, text: str, code: str) -> None:
    (error,) = errors(place(written(tmp_path, "bad.yaml", text), "-o", "json"))
    assert error["code"] == code
