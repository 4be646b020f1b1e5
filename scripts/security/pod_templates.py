"""Pod templates in config maps and custom resources, as the pods that they become."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import yaml

from penstock.scripts.security.finding import Finding
from penstock.scripts.security.rules import finding

# The scanner looks into these itself.
SCANNED = frozenset({"Pod", "StatefulSet", "Deployment", "DaemonSet", "Job", "CronJob"})
_RUNTIME = "runtime.json"
_FILE = "spark.kubernetes.executor.podTemplateFile"
# Source: Spark's documentation, "Running Spark on Kubernetes", "Using Kubernetes Volumes".
_HOST_PATH = re.compile(r"spark\.kubernetes\.executor\.volumes\.hostPath\.(?P<name>[^.]+)\.options\.path")


class Templates(NamedTuple):
    """Pod templates of an object.

    Args:
        pods: the pods that they become.
        findings: templates that cannot be read.
    """

    pods: tuple[dict[str, Any], ...]
    findings: tuple[Finding, ...]


def of(manifest: Mapping[str, Any], path: str) -> Templates:
    """The pod templates of an object that the scanner does not look into: a config map, or a resource of some operator.

    Args:
        manifest: the object.
        path: its path, for findings.
    """
    if manifest.get("kind") == "ConfigMap":
        return _of_config_map(manifest, path)
    if manifest.get("kind") in SCANNED:
        return Templates((), ())
    pods = [_as_pod(pod, manifest, f"template-{number}", {}) for number, pod in enumerate(_within(manifest))]
    return Templates(tuple(pods), ())


def _of_config_map(config_map: Mapping[str, Any], path: str) -> Templates:
    """Documents with containers, in YAML or JSON, with or without a kind."""
    settings = _settings(config_map)
    named = str(settings.get(_FILE, "")).rsplit("/", maxsplit=1)[-1]
    pods: list[dict[str, Any]] = []
    unread: dict[str, str] = {named: f"{named}, which {_FILE} names, has no containers"} if named else {}
    for key, text in {**(config_map.get("data") or {}), **(config_map.get("binaryData") or {})}.items():
        try:
            found = list(_pods(text))
        except (yaml.YAMLError, ValueError, RecursionError):
            unread[key] = f"{key} is neither YAML nor JSON"
            continue
        if found:
            unread.pop(key, None)
        pods += [_as_pod(pod, config_map, key if number == 0 else f"{key}-{number}", settings) for number, pod in enumerate(found)]
    return Templates(tuple(pods), tuple(finding("PEN_POD_2", path, detail) for detail in unread.values()))


def _pods(text: str) -> Iterator[dict[str, Any]]:
    """Pods of a text; most texts of a config map have none, and parsing each takes long."""
    if "containers" not in text:
        return
    for document in yaml.load_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        yield from _within(document)


def _within(value: Any) -> Iterator[dict[str, Any]]:
    """Pods at any depth: a template may be in a list, or in a workload that some controller creates."""
    if isinstance(value, dict):
        spec = value.get("spec")
        if isinstance(spec, dict) and isinstance(spec.get("containers"), list):
            yield value
            return
        for one in value.values():
            yield from _within(one)
    elif isinstance(value, list):
        for one in value:
            yield from _within(one)


def _settings(config_map: Mapping[str, Any]) -> Mapping[str, Any]:
    """The driver's Spark settings, with which Spark completes the template."""
    try:
        runtime = json.loads((config_map.get("data") or {}).get(_RUNTIME, "{}"))
    except ValueError:
        return {}
    settings: Mapping[str, Any] = runtime.get("sparkConf", {}) if isinstance(runtime, dict) else {}
    return settings


def _as_pod(template: Mapping[str, Any], owner: Mapping[str, Any], key: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    metadata = owner["metadata"]
    name = f"{metadata['name']}-{key.split('.', maxsplit=1)[0]}"
    own = {**(template.get("metadata") or {}), "name": name, "namespace": metadata.get("namespace", "default")}
    containers = [_completed(one, settings) if isinstance(one, dict) else one for one in template["spec"]["containers"]]
    spec = {**template["spec"], "containers": containers}
    of_host = [
        {"name": match["name"], "hostPath": {"path": path}} for name, path in settings.items() if (match := _HOST_PATH.fullmatch(name))
    ]
    if of_host:
        spec["volumes"] = [*(spec.get("volumes") or []), *of_host]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": own, "spec": spec}


def _completed(container: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """What Spark adds. Source: Spark's documentation, "Running Spark on Kubernetes", "Pod Template"."""
    if "spark.kubernetes.container.image" not in settings:
        return dict(container)
    made = {
        "image": settings["spark.kubernetes.container.image"],
        "imagePullPolicy": settings.get("spark.kubernetes.container.image.pullPolicy", "IfNotPresent"),
    }
    cpu = settings.get("spark.kubernetes.executor.request.cores", settings.get("spark.executor.cores", "1"))
    memory = str(settings.get("spark.executor.memory", "1g"))
    limits: dict[str, Any] = {"memory": memory}
    if "spark.kubernetes.executor.limit.cores" in settings:
        limits["cpu"] = settings["spark.kubernetes.executor.limit.cores"]
    return {**container, **made, "resources": {"requests": {"cpu": str(cpu), "memory": memory}, "limits": limits}}
