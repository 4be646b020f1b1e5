"""Rules on Kubernetes objects as written: fields that the API server drops, and values that Karpenter rejects."""

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
    "unknown field dropped by the API server",
    why="Karpenter 1.14 has no such field: kubectl apply accepts the manifest, but the field has no effect",
    fix="remove it, or move it to where Karpenter 1.14 expects it",
)
def unknown_field(subject: Subject) -> Iterator[Fault]:
    """Source: the CRD of Karpenter 1.14.1, which prunes unknown fields; consolidation and expiry moved between v1beta1 and v1."""
    for manifest in subject.manifests:
        for field in manifest.unknown:
            yield Fault(manifest.place(field), f"{_name(manifest)}: {field}", "a field of the CRD", _MOVED.get(field.split("[")[0], ""))


@rule(
    "LINT-016",
    "error",
    "value rejected by Kubernetes or Karpenter",
    why="kubectl apply fails, or Karpenter marks the object as not ready and creates no nodes from it",
    fix="use an allowed value",
)
def refused_value(subject: Subject) -> Iterator[Fault]:
    """Source: the CRDs of Karpenter 1.14.1 and its runtime validation; Kubernetes' rules for selectors, labels and tolerations."""
    for manifest in subject.manifests:
        for field, need in manifest.refused.items():
            yield Fault(manifest.place(field), f"{_name(manifest)}: {field}", need)


@rule(
    "LINT-017",
    "error",
    "apiVersion not served by Karpenter 1.14",
    why="kubectl apply reports an unknown kind, and Karpenter ignores objects of older versions",
    fix="convert it: apiVersion karpenter.sh/v1 and karpenter.k8s.aws/v1",
)
def old_api(subject: Subject) -> Iterator[Fault]:
    """Source: Karpenter's upgrade guide: v1alpha5 was removed in 0.32, v1beta1 in 1.1."""
    for manifest in subject.manifests:
        kind = RENAMED.get(manifest.kind, manifest.kind)
        if kind in SERVED and (manifest.kind in RENAMED or manifest.api_version != SERVED[kind]):
            yield Fault(manifest.place("apiVersion"), f"{manifest.api_version} {manifest.kind}", f"{SERVED[kind]} {kind}")


@rule(
    "LINT-018",
    "warning",
    "unpinned node image",
    why="whenever AWS publishes a new AMI, all nodes drift and are replaced",
    fix="pin a version, for example alias: al2023@v20260901, and raise it together with upgrades of the jobs",
)
def latest_image(subject: Subject) -> Iterator[Fault]:
    """Source: Karpenter's documentation of EC2NodeClass: @latest is not for production."""
    for manifest in subject.manifests:
        if manifest.properties.get(ALIAS, "").endswith("@latest"):
            yield Fault(manifest.place(ALIAS), f"{_name(manifest)}: {manifest.properties[ALIAS]}", "a pinned version")


@rule(
    "LINT-019",
    "warning",
    "instance metadata accessible without a token",
    why="a server-side request forgery in a job can read the node's credentials",
    fix="metadataOptions: {httpTokens: required, httpPutResponseHopLimit: 1}",
)
def open_metadata(subject: Subject) -> Iterator[Fault]:
    """Source: EC2 User Guide, IMDSv2; Karpenter's default is required."""
    for manifest in subject.manifests:
        if manifest.properties.get(HTTP_TOKENS) == "optional":
            yield Fault(manifest.place(HTTP_TOKENS, "metadataOptions"), f"{_name(manifest)}: httpTokens optional", "required")


# Source: karpenter v1.14.1's upgrade guide, from v1beta1 to v1.
_MOVED = {
    "spec.disruption.expireAfter": "move it to spec.template.spec.expireAfter",
    "spec.template.spec.kubelet": "move it to the EC2NodeClass: spec.kubelet",
    "spec.requirements": "move it to spec.template.spec.requirements",
    "spec.taints": "move it to spec.template.spec.taints",
    "spec.ttlSecondsAfterEmpty": "use spec.disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 30s}",
    "spec.ttlSecondsUntilExpired": "use spec.template.spec.expireAfter: 720h",
    "spec.consolidation": "use spec.disruption.consolidationPolicy",
    "spec.consolidationPolicy": "use spec.disruption.consolidationPolicy",
    "spec.nodeClassRef": "move it to spec.template.spec.nodeClassRef",
}


def _name(manifest: LintedManifest) -> str:
    return f"{manifest.kind} {manifest.name}"
