"""EKS add-ons, which EKS runs in the cluster."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from penstock.scripts.emulation import neighbours
from penstock.scripts.emulation.checked_service import Answer, Asked, Operation
from penstock.scripts.emulation.eks.clusters import VERSIONS
from penstock.scripts.emulation.eks.pod_identity import associate
from penstock.scripts.emulation.eks.state import Cluster, Eks, in_use, invalid, not_found, now, page

_VERSION = re.compile(r"v\d+\.\d+\.\d+-eksbuild\.\d+")


@dataclass(frozen=True)
class Addon:
    """An add-on of EKS.

    Args:
        name: its name, such as ``vpc-cni``.
        kind: its type.
        version: latest emulated version, without the leading v; None for the cluster's version.
        namespace: its namespace.
    """

    name: str
    kind: str
    version: str | None
    namespace: str = "kube-system"

    def newest(self, kubernetes: str) -> str:
        """The default version for a cluster."""
        return f"v{self.version or f'{kubernetes}.0'}-eksbuild.1"


# The names are EKS's; the versions are examples, and any version in the right format is accepted. Source: EKS's user guide, "AWS add-ons".
KNOWN: Mapping[str, Addon] = {
    addon.name: addon
    for addon in (
        Addon("vpc-cni", "networking", "1.20.4"),
        Addon("coredns", "networking", "1.12.4"),
        Addon("kube-proxy", "networking", None),
        Addon("eks-pod-identity-agent", "security", "1.3.9"),
        Addon("aws-ebs-csi-driver", "storage", "1.52.1"),
        Addon("aws-efs-csi-driver", "storage", "2.1.13"),
        Addon("aws-mountpoint-s3-csi-driver", "storage", "2.1.0"),
        Addon("snapshot-controller", "storage", "8.3.0"),
        Addon("eks-node-monitoring-agent", "observability", "1.4.1"),
        Addon("amazon-cloudwatch-observability", "observability", "4.5.0", "amazon-cloudwatch"),
        Addon("metrics-server", "observability", "0.8.0"),
        Addon("kube-state-metrics", "observability", "2.17.0", "kube-state-metrics"),
        Addon("prometheus-node-exporter", "observability", "1.10.2", "prometheus-node-exporter"),
        Addon("cert-manager", "security", "1.19.1", "cert-manager"),
    )
}


def create_addon(eks: Eks, asked: Asked) -> Answer:
    """CreateAddon: active at once."""
    cluster, name = eks.cluster(asked), asked["addonName"]
    if name in cluster.addons:
        raise in_use("Addon already exists.", clusterName=cluster.name, addonName=name)
    known = _known(cluster, name)
    version = asked.get("addonVersion") or known.newest(cluster.description["version"])
    _need_version(cluster, name, version)
    _need_values(cluster, name, asked)
    arn = cluster.arn("addon", name, str(uuid.uuid4()))
    owned = _associate(cluster, known, arn, asked.get("podIdentityAssociations", ()))
    optional = {key: asked[key] for key in ("serviceAccountRoleArn", "configurationValues") if key in asked}
    cluster.addons[name] = {
        "addonName": name,
        "clusterName": cluster.name,
        "status": "ACTIVE",
        "addonVersion": version,
        "health": {"issues": []},
        "addonArn": arn,
        "createdAt": now(),
        "modifiedAt": now(),
        "tags": dict(asked.get("tags", {})),
        "podIdentityAssociations": owned,
        "namespaceConfig": {"namespace": asked.get("namespaceConfig", {}).get("namespace", known.namespace)},
        **optional,
    }
    return {"addon": cluster.addons[name]}


def describe_addon(eks: Eks, asked: Asked) -> Answer:
    """DescribeAddon."""
    return {"addon": _addon(eks.cluster(asked), asked)}


def list_addons(eks: Eks, asked: Asked) -> Answer:
    """ListAddons."""
    return page(sorted(eks.cluster(asked).addons), asked, "addons")


def update_addon(eks: Eks, asked: Asked) -> Answer:
    """UpdateAddon: omitted settings are kept; a pod identity list replaces the previous one."""
    cluster = eks.cluster(asked)
    addon = _addon(cluster, asked)
    name = addon["addonName"]
    if "addonVersion" in asked:
        _need_version(cluster, name, asked["addonVersion"])
    _need_values(cluster, name, asked)
    changed = {key: asked[key] for key in ("addonVersion", "serviceAccountRoleArn", "configurationValues") if key in asked}
    if "podIdentityAssociations" in asked:
        _disassociate(cluster, addon)
        owned = _associate(cluster, _known(cluster, name), addon["addonArn"], asked["podIdentityAssociations"])
        changed["podIdentityAssociations"] = owned
    addon.update(changed, modifiedAt=now())
    return cluster.note_update("AddonUpdate", {key[0].upper() + key[1:]: value for key, value in changed.items()})


def delete_addon(eks: Eks, asked: Asked) -> Answer:
    """DeleteAddon: with its associations."""
    cluster = eks.cluster(asked)
    addon = _addon(cluster, asked)
    _disassociate(cluster, addon)
    del cluster.addons[addon["addonName"]]
    return {"addon": {**addon, "status": "DELETING"}}


def describe_addon_versions(eks: Eks, asked: Asked) -> Answer:
    """DescribeAddonVersions: the latest version of each add-on for each Kubernetes version."""
    name = asked.get("addonName")
    if name is not None and name not in KNOWN:
        raise not_found(f"Addon {name} is not known", addonName=name)
    wanted = [asked["kubernetesVersion"]] if "kubernetesVersion" in asked else list(VERSIONS)
    chosen = [addon for addon in KNOWN.values() if name in (None, addon.name)]
    return page([_described(addon, wanted) for addon in chosen], asked, "addons")


def _described(addon: Addon, kubernetes: Sequence[str]) -> dict[str, Any]:
    by_version: dict[str, list[str]] = {}
    for version in kubernetes:
        by_version.setdefault(addon.newest(version), []).append(version)
    versions = [
        {
            "addonVersion": version,
            "architecture": ["amd64", "arm64"],
            "compatibilities": [{"clusterVersion": one, "platformVersions": ["*"], "defaultVersion": True} for one in clusters],
            "requiresConfiguration": False,
        }
        for version, clusters in by_version.items()
    ]
    named = {"addonName": addon.name, "type": addon.kind, "publisher": "eks", "owner": "aws", "defaultNamespace": addon.namespace}
    return {**named, "addonVersions": versions}


def _known(cluster: Cluster, name: str) -> Addon:
    if name not in KNOWN:
        raise invalid(f"Addon {name} specified is not supported", clusterName=cluster.name, addonName=name)
    return KNOWN[name]


def _addon(cluster: Cluster, asked: Asked) -> dict[str, Any]:
    name = asked["addonName"]
    if name not in cluster.addons:
        raise not_found(f"No addon: {name} found in cluster: {cluster.name}", clusterName=cluster.name, addonName=name)
    return cluster.addons[name]


def _need_version(cluster: Cluster, name: str, version: str) -> None:
    """Validate the format of a version; kube-proxy's is at most the cluster's minor version."""
    own: str = cluster.description["version"]
    fits = _VERSION.fullmatch(version) is not None
    if fits and name == "kube-proxy":
        major, minor = own.split(".")
        theirs = version.removeprefix("v").split(".")
        fits = theirs[0] == major and int(theirs[1]) <= int(minor)
    if not fits:
        raise invalid(f"Addon version specified is not supported: {version} in {own}", clusterName=cluster.name, addonName=name)


def _need_values(cluster: Cluster, name: str, asked: Asked) -> None:
    values = asked.get("configurationValues")
    if values:
        try:
            read = yaml.safe_load(values)
        except yaml.YAMLError:
            read = None
        if not isinstance(read, dict):
            message = "ConfigurationValue provided in request is not supported: neither JSON nor YAML of an object"
            raise invalid(message, clusterName=cluster.name, addonName=name)
    role = asked.get("serviceAccountRoleArn")
    if role and neighbours.trust_policy(cluster.place, role) is None:
        raise invalid(f"The service account role {role} does not exist", clusterName=cluster.name, addonName=name)


def _associate(cluster: Cluster, addon: Addon, arn: str, asked: Sequence[Mapping[str, str]]) -> list[str]:
    named = [{**one, "namespace": addon.namespace} for one in asked]
    return [associate(cluster, one, owner=arn)["associationArn"] for one in named]


def _disassociate(cluster: Cluster, addon: Mapping[str, Any]) -> None:
    owned = [id for id, one in cluster.associations.items() if one.get("ownerArn") == addon["addonArn"]]
    for id in owned:
        del cluster.associations[id]


OPERATIONS: Mapping[str, Operation] = {
    "CreateAddon": create_addon,
    "DescribeAddon": describe_addon,
    "ListAddons": list_addons,
    "UpdateAddon": update_addon,
    "DeleteAddon": delete_addon,
    "DescribeAddonVersions": describe_addon_versions,
}
