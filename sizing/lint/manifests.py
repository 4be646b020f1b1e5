"""Rules on Kubernetes objects as they are written: what the API server drops, and what Karpenter refuses."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.sizing.lint.rule import Fault, rule
from penstock.sizing.lint.subject import LintedManifest, Subject

NODE_POOL, NODE_CLASS = "NodePool", "EC2NodeClass"
SERVED = {NODE_POOL: "karpenter.sh/v1", NODE_CLASS: "karpenter.k8s.aws/v1"}
# Source: karpenter v1.14.1's upgrade guide: kinds of Karpenter before 0.32.
RENAMED = {"Provisioner": NODE_POOL, "AWSNodeTemplate": NODE_CLASS}
ALIAS, HTTP_TOKENS = "amiSelectorTerms.alias", "metadataOptions.httpTokens"


@rule(
    "LINT-015",
    "error",
    "the API server drops this field",
    why="it is no field of Karpenter 1.14's objects: kubectl apply takes the manifest, and what the field should do does not happen",
    fix="take it out, or write it where Karpenter 1.14 has it",
)
def unknown_field(subject: Subject) -> Iterator[Fault]:
    """Source: the CRD of Karpenter 1.14.1, which prunes unknown fields; consolidation and expiry moved between v1beta1 and v1."""
    for manifest in subject.manifests:
        for field in manifest.unknown:
            yield Fault(manifest.place(field), f"{_name(manifest)}: {field}", "a field of the CRD", _MOVED.get(field.split("[")[0], ""))


@rule(
    "LINT-016",
    "error",
    "Kubernetes or Karpenter refuses this value",
    why="kubectl apply fails, or Karpenter marks the object as not ready and makes no node of it",
    fix="write a value that is allowed",
)
def refused_value(subject: Subject) -> Iterator[Fault]:
    """Source: the CRDs of Karpenter 1.14.1 and its runtime validation; Kubernetes' rules for selectors, labels and tolerations."""
    for manifest in subject.manifests:
        for field, need in manifest.refused.items():
            yield Fault(manifest.place(field), f"{_name(manifest)}: {field}", need)


@rule(
    "LINT-017",
    "error",
    "Karpenter 1.14 does not serve this version of the object",
    why="kubectl apply finds no such kind, and Karpenter does not look at objects of older versions",
    fix="convert it: apiVersion karpenter.sh/v1 and karpenter.k8s.aws/v1",
)
def old_api(subject: Subject) -> Iterator[Fault]:
    """Source: Karpenter's upgrade guide: v1alpha5 went with 0.32, v1beta1 with 1.1."""
    for manifest in subject.manifests:
        kind = RENAMED.get(manifest.kind, manifest.kind)
        if kind in SERVED and (manifest.kind in RENAMED or manifest.api_version != SERVED[kind]):
            yield Fault(manifest.place("apiVersion"), f"{manifest.api_version} {manifest.kind}", f"{SERVED[kind]} {kind}")


@rule(
    "LINT-018",
    "warning",
    "the node image is the latest one",
    why="with each new AMI all the nodes drift and are replaced, at the hour in which AWS happens to publish it",
    fix="pin a version, as alias: al2023@v20260901, and raise it together with the job's own upgrades",
)
def latest_image(subject: Subject) -> Iterator[Fault]:
    """Source: Karpenter's documentation of EC2NodeClass: @latest is not for production."""
    for manifest in subject.manifests:
        if manifest.properties.get(ALIAS, "").endswith("@latest"):
            yield Fault(manifest.place(ALIAS), f"{_name(manifest)}: {manifest.properties[ALIAS]}", "a version")


@rule(
    "LINT-019",
    "warning",
    "the instance metadata answers without a token",
    why="a request that a job is tricked into reads the node's credentials",
    fix="metadataOptions: {httpTokens: required, httpPutResponseHopLimit: 1}",
)
def open_metadata(subject: Subject) -> Iterator[Fault]:
    """Source: EC2 User Guide, IMDSv2; Karpenter's default is required."""
    for manifest in subject.manifests:
        if manifest.properties.get(HTTP_TOKENS) == "optional":
            yield Fault(manifest.place(HTTP_TOKENS, "metadataOptions"), f"{_name(manifest)}: httpTokens optional", "required")


# Source: karpenter v1.14.1's upgrade guide, from v1beta1 to v1.
_MOVED = {
    "spec.disruption.expireAfter": "write it as spec.template.spec.expireAfter",
    "spec.template.spec.kubelet": "write it in the EC2NodeClass: spec.kubelet",
    "spec.requirements": "write it as spec.template.spec.requirements",
    "spec.taints": "write it as spec.template.spec.taints",
    "spec.ttlSecondsAfterEmpty": "write spec.disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 30s}",
    "spec.ttlSecondsUntilExpired": "write spec.template.spec.expireAfter: 720h",
    "spec.consolidation": "write spec.disruption.consolidationPolicy",
    "spec.consolidationPolicy": "write spec.disruption.consolidationPolicy",
    "spec.nodeClassRef": "write it as spec.template.spec.nodeClassRef",
}


def _name(manifest: LintedManifest) -> str:
    return f"{manifest.kind} {manifest.name}"
