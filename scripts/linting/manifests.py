"""Kubernetes manifests as lint sees them: NodePools, EC2NodeClasses, pod templates, and disruption budgets, with their lines.

Only the fields that the rules check are read. Other kinds of objects are ignored, and so are fields that have nothing to do with
scheduling.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from penstock.jobs.document import Document, Path_, text_of
from penstock.scripts.linting.environment import where
from penstock.scripts.linting.jobs import selected
from penstock.scripts.planning.kubernetes_documents import documents, objects
from penstock.scripts.planning.kubernetes_object import Fields
from penstock.sizing.catalog.labels import NORMALIZED, ZONE_ID
from penstock.sizing.lint.manifests import ALIAS, HTTP_TOKENS, RENAMED
from penstock.sizing.lint.subject import LintedBudget, LintedConf, LintedManifest, LintedPods, LintedPool, Role, Where
from penstock.sizing.placement.node_pool_manifests import NodePool
from penstock.sizing.placement.pod_manifests import NodeSelectorTerm
from penstock.sizing.placement.resources import NODES, RESOURCES
from penstock.sizing.placement.selection import ManifestToleration

# Source: the CRD karpenter.sh_nodepools of Karpenter 1.14.1.
_NODE_POOL_FIELDS: dict[Path_, set[str]] = {
    ("spec",): {"disruption", "limits", "replicas", "template", "weight"},
    ("spec", "disruption"): {"budgets", "consolidateAfter", "consolidationPolicy"},
    ("spec", "template"): {"metadata", "spec"},
    ("spec", "template", "spec"): {
        "expireAfter",
        "nodeClassRef",
        "requirements",
        "startupTaints",
        "taints",
        "terminationGracePeriod",
    },
}
# Path of the pod template in each kind.
_TEMPLATES: dict[str, Path_] = {
    "Pod": (),
    "Deployment": ("spec", "template"),
    "ReplicaSet": ("spec", "template"),
    "StatefulSet": ("spec", "template"),
    "Job": ("spec", "template"),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
}
_SPARK_KINDS = {"SparkApplication": ("spec",), "ScheduledSparkApplication": ("spec", "template")}
_ROLES: tuple[Role, ...] = ("driver", "executor")
_AFFINITY: Path_ = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
_TERMS: TypeAdapter[tuple[NodeSelectorTerm, ...]] = TypeAdapter(tuple[NodeSelectorTerm, ...])
_TOLERATIONS: TypeAdapter[tuple[ManifestToleration, ...]] = TypeAdapter(tuple[ManifestToleration, ...])


class Manifests(NamedTuple):
    """The relevant content of manifests."""

    pools: tuple[LintedPool, ...] = ()
    pods: tuple[LintedPods, ...] = ()
    confs: tuple[LintedConf, ...] = ()
    manifests: tuple[LintedManifest, ...] = ()
    budgets: tuple[LintedBudget, ...] = ()

    def plus(self, other: Manifests) -> Manifests:
        """The union of both."""
        return Manifests(
            pools=self.pools + other.pools,
            pods=self.pods + other.pods,
            confs=self.confs + other.confs,
            manifests=self.manifests + other.manifests,
            budgets=self.budgets + other.budgets,
        )


def read_manifests(path: Path) -> Manifests:
    """All the objects of a file that lint knows.

    Raises:
        PenstockError: SPEC-001, SPEC-002, SPEC-003 or SPEC-011; several come as `Faults`.
    """
    manifests = Manifests()
    for document in documents(text_of(path), str(path)):
        for root in objects(document):
            for part in _object(_Object(document, root)):
                manifests = manifests.plus(part)
    return manifests


class _Object(Fields):
    """One Kubernetes object in a document."""

    def __init__(self, document: Document, root: Path_) -> None:
        super().__init__(document, root)
        self.kind = self.text("kind")
        self.api_version = self.text("apiVersion")
        self.name = self.text("metadata", "name") or f"without a name in {document.file}"
        self.refused: dict[str, str] = {}
        self.places: dict[str, Where] = {}

    def texts(self, *path: str | int) -> dict[str, str]:
        """A mapping of texts, such as labels; other values are rejected."""
        mapping = self.mapping(*path)
        for key, value in mapping.items():
            if not isinstance(value, str):
                self.refuse((*path, key), "a string: quote it")
        return {key: value for key, value in mapping.items() if isinstance(value, str)}

    def where(self, *path: str | int) -> Where:
        """A field with its line."""
        return where(self.document, (*self.root, *path))

    def refuse(self, path: Path_, need: str) -> None:
        """Records a value that Kubernetes or Karpenter would reject."""
        place = self.where(*path)
        field = place.path
        self.refused.setdefault(field, need)
        self.places[field] = place

    def refuse_all(self, invalid: ValidationError, path: Path_) -> None:
        """Records a model's errors below a path; what is merely not modelled is ignored."""
        for detail in invalid.errors(include_url=False):
            if detail["type"] not in ("extra_forbidden", "not_modelled"):
                context = detail.get("ctx") or {}
                need = str(context.get("need") or (f"one of {context['expected']}" if "expected" in context else detail["msg"]))
                self.refuse((*path, *detail["loc"]), need)

    def manifest(self, unknown: Iterable[Path_] = (), properties: Mapping[str, tuple[str, Where]] | None = None) -> LintedManifest:
        """The object itself, once all of it has been read."""
        named = {self.where(*path).path: self.where(*path) for path in unknown}
        given = properties or {}
        return LintedManifest(
            kind=self.kind,
            api_version=self.api_version,
            name=self.name,
            unknown=tuple(named),
            refused=self.refused,
            properties={name: text for name, (text, _) in given.items()},
            where=self.where(),
            fields={"apiVersion": self.where("apiVersion"), **named, **self.places, **{name: place for name, (_, place) in given.items()}},
        )


def _object(item: _Object) -> Iterator[Manifests]:
    if RENAMED.get(item.kind, item.kind) == "NodePool":
        yield _node_pool(item)
    elif RENAMED.get(item.kind, item.kind) == "EC2NodeClass":
        yield Manifests(manifests=(item.manifest(properties=_node_class(item)),))
    elif item.kind in _TEMPLATES:
        pods = _pods(item, _TEMPLATES[item.kind], f"{item.kind} {item.name}", _role(item, _TEMPLATES[item.kind]))
        yield Manifests(pods=(pods,), manifests=(item.manifest(),))
    elif item.kind in _SPARK_KINDS:
        yield _spark_application(item, _SPARK_KINDS[item.kind])
    elif item.kind == "PodDisruptionBudget":
        yield Manifests(budgets=(LintedBudget(match_labels=item.texts("spec", "selector", "matchLabels")),))


def _node_pool(item: _Object) -> Manifests:
    unknown = [(*path, key) for path, known in _NODE_POOL_FIELDS.items() for key in item.mapping(*path) if key not in known]
    try:
        pool = NodePool.model_validate(_read_part(item))
    except ValidationError as invalid:
        item.refuse_all(invalid, ())
        return Manifests(manifests=(item.manifest(unknown),))
    fields = {
        "requirements": item.where("spec", "template", "spec", "requirements"),
        "taints": item.where("spec", "template", "spec", "taints"),
        "disruption": item.where("spec", "disruption"),
        "expireAfter": item.where("spec", "template", "spec", "expireAfter"),
    }
    for index in _kept(item):
        fields[f"requirements[{len(fields) - 4}]"] = item.where("spec", "template", "spec", "requirements", index)
    return Manifests(pools=(LintedPool(pool=pool, where=item.where(), fields=fields),), manifests=(item.manifest(unknown),))


def _read_part(item: _Object) -> dict[str, Any]:
    """A NodePool without the fields that no rule checks: they might be rejected as not modelled."""
    node = item.mapping("spec", "template", "spec")
    known = _NODE_POOL_FIELDS["spec", "template", "spec"]
    kept = {key: value for key, value in node.items() if key in known and key != "nodeClassRef"}
    if isinstance(node.get("requirements"), list):
        kept["requirements"] = [node["requirements"][index] for index in _kept(item)]
    metadata = {key: value for key, value in item.mapping("spec", "template", "metadata").items() if key in ("labels", "annotations")}
    spec: dict[str, Any] = {"template": {"metadata": metadata, "spec": kept}}
    spec |= {key: value for key in ("weight", "disruption") if (value := item.get("spec", key)) is not None}
    spec["limits"] = {name: amount for name, amount in item.mapping("spec", "limits").items() if name in (*RESOURCES, NODES)}
    return {"metadata": {"name": item.name}, "spec": spec}


def _kept(item: _Object) -> list[int]:
    """The requirements that are read: not those on zone ids, which differ between accounts."""
    ones = item.get("spec", "template", "spec", "requirements")
    keys = [one.get("key") if isinstance(one, dict) else None for one in (ones if isinstance(ones, list) else [])]
    return [index for index, key in enumerate(keys) if not isinstance(key, str) or NORMALIZED.get(key, key) != ZONE_ID]


def _node_class(item: _Object) -> dict[str, tuple[str, Where]]:
    """The properties of an EC2NodeClass that the rules check."""
    properties = {HTTP_TOKENS: (item.text("spec", "metadataOptions", "httpTokens"), item.where("spec", "metadataOptions", "httpTokens"))}
    terms = item.get("spec", "amiSelectorTerms")
    for index, term in enumerate(terms if isinstance(terms, list) else []):
        alias = term.get("alias") if isinstance(term, dict) else None
        if isinstance(alias, str):
            properties[ALIAS] = (alias, item.where("spec", "amiSelectorTerms", index, "alias"))
    return {name: found_text for name, found_text in properties.items() if found_text[0]}


def _role(item: _Object, template: Path_) -> Role:
    """The role of a template's pods, by the labels that Spark and its operators set."""
    labels = item.texts(*template, "metadata", "labels")
    said = labels.get("spark-role") or labels.get("app.kubernetes.io/component") or ""
    return "driver" if said == "driver" else "executor" if said in ("executor", "exec") else "other"


def _spark_application(item: _Object, spec: Path_) -> Manifests:
    """An application of Kubeflow's operator or of Apache's."""
    conf = {key: _setting(value) for key, value in item.mapping(*spec, "sparkConf").items() if not isinstance(value, dict | list)}
    fields = {key: item.where(*spec, "sparkConf", key) for key in conf}
    pods: dict[str, LintedPods] = {}
    for role in _ROLES:
        own = _pods(item, _pod_path(item, spec, role), f"{role} of {item.name}", role, common=item.texts(*spec, "nodeSelector"))
        pods[role] = selected(own, item.name, conf, fields)
    # Another Spark version has other settings.
    version = item.text(*spec, "sparkVersion") or item.text(*spec, "runtimeVersions", "sparkVersion")
    linted = LintedConf(
        name=item.name,
        conf=conf,
        executor=pods["executor"],
        where=item.where(*spec, "sparkConf") if conf else item.where(),
        fields=fields,
    )
    confs = (linted,) if not version or version.startswith("4.") else ()
    return Manifests(pods=tuple(pods.values()), confs=confs, manifests=(item.manifest(),))


def _pod_path(item: _Object, spec: Path_, role: Role) -> Path_:
    """Where an application describes its driver or executors: a pod template, or equivalent fields."""
    for path in ((*spec, f"{role}Spec", "podTemplateSpec"), (*spec, role, "template")):
        if item.mapping(*path):
            return path
    return (*spec, role)


def _pods(item: _Object, template: Path_, name: str, role: Role, *, common: Mapping[str, str] | None = None) -> LintedPods:
    """The pods of a template.

    Args:
        item: the object.
        template: where metadata and spec stand; Kubeflow's operator has the fields of both right there.
        name: for people.
        role: what they do.
        common: node selectors that hold for all pods of an application.
    """
    flat = role != "other" and not item.mapping(*template, "spec")
    spec: Path_ = template if flat else (*template, "spec")
    metadata: Path_ = template if flat else (*template, "metadata")
    selector = item.texts(*spec, "nodeSelector")
    fields = {f"nodeSelector.{label}": item.where(*spec, "nodeSelector", label) for label in selector}
    named = (("nodeSelector", ("nodeSelector",)), ("tolerations", ("tolerations",)), ("affinity", _AFFINITY))
    fields |= {field: item.where(*spec, *path) for field, path in named if item.get(*spec, *path) is not None}
    return LintedPods(
        name=name,
        role=role,
        node_selector={**(common or {}), **selector},
        terms=_validated(item, _TERMS, (*spec, *_AFFINITY)),
        tolerations=_validated(item, _TOLERATIONS, (*spec, "tolerations")),
        labels=item.texts(*metadata, "labels"),
        annotations=item.texts(*metadata, "annotations"),
        where=item.where(*template) if item.mapping(*template) else item.where(),
        fields=fields,
    )


def _validated(item: _Object, adapter: TypeAdapter[Any], path: Path_) -> tuple[Any, ...]:
    """A list of an object as models; empty if there is none, or if it is rejected."""
    value = item.get(*path)
    if not isinstance(value, list):
        return ()
    try:
        read: tuple[Any, ...] = adapter.validate_python(tuple(value))
    except ValidationError as invalid:
        item.refuse_all(invalid, path)
        return ()
    return read


def _setting(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
