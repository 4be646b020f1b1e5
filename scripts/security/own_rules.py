"""Rules on Kubernetes objects and on arguments of resources that the scanner has no rule for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from penstock.scripts.provisioning.stacks import Stack
from penstock.scripts.security.finding import Finding
from penstock.scripts.security.rules import finding

# Source: the AWS provider's documentation, "Provider configuration". A role to assume is not a credential.
_CREDENTIALS = re.compile(r"^(access_key|secret_key|token|password|client_key|client_certificate)$")


def of_manifest(manifest: Mapping[str, Any], path: str) -> Iterator[Finding]:
    """Findings in a Kubernetes object.

    Args:
        manifest: the object.
        path: its path.
    """
    if manifest.get("kind") == "EC2NodeClass":
        yield from _of_node_class(manifest.get("spec") or {}, path)
    for volume in (pod_spec(manifest) or {}).get("volumes") or []:
        if "hostPath" in volume:
            yield finding("PEN_POD_1", path, f"volume {volume.get('name')} is {(volume['hostPath'] or {}).get('path')}")


def pod_spec(manifest: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The pod's spec in a pod or workload; None in other objects."""
    spec = manifest.get("spec")
    if not isinstance(spec, Mapping):
        return None
    if isinstance(spec.get("containers"), list):
        return spec
    for nested in ("template", "jobTemplate"):
        if isinstance(spec.get(nested), Mapping):
            return pod_spec(spec[nested])
    return None


def _of_node_class(spec: Mapping[str, Any], path: str) -> Iterator[Finding]:
    """Source: Karpenter's documentation, "NodeClasses"; the options' defaults are safe, but a shipped class states them."""
    options = spec.get("metadataOptions") or {}
    if options.get("httpTokens") != "required" or options.get("httpPutResponseHopLimit") != 1:
        given = f"httpTokens {options.get('httpTokens')}, httpPutResponseHopLimit {options.get('httpPutResponseHopLimit')}"
        yield finding("PEN_NODE_1", path, given)
    devices = spec.get("blockDeviceMappings") or []
    if not devices or any((device.get("ebs") or {}).get("encrypted") is not True for device in devices):
        yield finding("PEN_NODE_2", path)


def of_stack(stack: Stack) -> Iterator[Finding]:
    """Findings in a stack's provider block and in the resources that the scanner has no rule for.

    Args:
        stack: a synthesized stack.
    """
    for name in stack.content().get("module", {}):
        # The scan sees the resources that the stack itself has.
        yield finding("PEN_STACK_1", f"{stack.name}/module.{name}")
    for provider, blocks in stack.content().get("provider", {}).items():
        for name in _keys(blocks):
            if _CREDENTIALS.match(name):
                yield finding("PEN_PROVIDER_1", f"{stack.name}/provider.{provider}", name)
    for address, arguments in stack.resources():
        if address.startswith("aws_msk_cluster.") and not _is_closed(arguments):
            yield finding("PEN_MSK_1", f"{stack.name}/{address}")


def _keys(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, one in value.items():
            yield str(name)
            yield from _keys(one)
    elif isinstance(value, list):
        for one in value:
            yield from _keys(one)


def _is_closed(cluster: Mapping[str, Any]) -> bool:
    authentication = _block(cluster.get("client_authentication"))
    transit = _block(_block(cluster.get("encryption_info")).get("encryption_in_transit"))
    iam = _block(authentication.get("sasl")).get("iam") is True
    return iam and authentication.get("unauthenticated") is not True and transit.get("client_broker") == "TLS"


def _block(value: Any) -> Mapping[str, Any]:
    one = value[0] if isinstance(value, list) and value else value
    return one if isinstance(one, Mapping) else {}
