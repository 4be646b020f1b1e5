"""Releases of a charts stack: the manifests of Penstock's own chart, and findings for what is not one of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock.scripts.provisioning.stacks import Stack
from penstock.scripts.security.finding import Finding
from penstock.scripts.security.references import References, unescaped
from penstock.scripts.security.rules import finding

_RELEASE = "helm_release."
# All that a release of the own chart may be given: anything else could add or change objects that are not scanned.
_OWN_ARGUMENTS = frozenset(
    {"//", "atomic", "chart", "create_namespace", "depends_on", "max_history", "name", "namespace", "timeout", "values", "wait"}
)
# The archive of a session's app, which has to outlive the release that names it, and so is in the same stack.
_ARCHIVE_ARGUMENTS = frozenset({"//", "bucket", "content_base64", "key", "lifecycle", "override_provider"})
# The chart's only template: what it is given is what it creates.
_TEMPLATE = "{{- range .Values.manifests }}\n---\n{{ toYaml . }}\n{{- end }}\n"
_FILES = frozenset({"Chart.yaml", "values.schema.json", "values.yaml", "templates/NOTES.txt", "templates/manifests.yaml"})


def manifests(stack: Stack, references: References) -> list[dict[str, Any]]:
    """The manifests of a stack's releases of the own chart, with placeholders for values that only Terraform knows.

    Args:
        stack: a charts stack.
        references: the placeholders.
    """
    return [manifest for release in _own(stack).values() for manifest in _manifests(release, references)]


def findings(stack: Stack, references: References) -> Iterator[Finding]:
    """Findings in the releases of a charts stack.

    Args:
        stack: a charts stack.
        references: the placeholders.
    """
    own = _own(stack)
    for address, arguments in stack.resources():
        path = f"{stack.name}/{address}"
        if _is_app(address, arguments):
            continue
        if not address.startswith(_RELEASE):
            yield finding("PEN_HELM_3", path)
        elif address not in own:
            place = f"{arguments.get('repository', 'no repository')}, chart {arguments.get('chart')}"
            yield finding("PEN_HELM_1", path_of(stack, address, arguments), place)
        else:
            yield from (finding("PEN_HELM_2", path, detail) for detail in _unscanned(stack, arguments, references))


def _is_app(address: str, arguments: Mapping[str, Any]) -> bool:
    """Whether a resource is the archive of an app, encrypted and protected as its bucket is: nothing that would make it differ is set."""
    return address.startswith("aws_s3_object.") and set(arguments) <= _ARCHIVE_ARGUMENTS


def path_of(stack: Stack, address: str, arguments: Mapping[str, Any]) -> str:
    """Path of a release; of another chart it ends with the chart's version.

    Args:
        stack: its stack.
        address: its address.
        arguments: its arguments.
    """
    path = f"{stack.name}/{address}"
    is_another = address.startswith(_RELEASE) and address not in _own(stack)
    return f"{path}@{arguments.get('version', 'latest')}" if is_another else path


def _own(stack: Stack) -> dict[str, Mapping[str, Any]]:
    return {
        address: arguments
        for address, arguments in stack.resources()
        if address.startswith(_RELEASE) and "repository" not in arguments and str(arguments.get("chart", "")).startswith("./")
    }


def _manifests(release: Mapping[str, Any], references: References) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for values in release.get("values", []):
        try:
            read = json.loads(unescaped(references.resolved(values)))
        except ValueError:
            continue
        found += read.get("manifests", []) if isinstance(read, dict) else []
    return found


def _unscanned(stack: Stack, release: Mapping[str, Any], references: References) -> Iterator[str]:
    if others := sorted(set(release) - _OWN_ARGUMENTS):
        yield f"it also has {', '.join(others)}"
    values = release.get("values", [])
    if len(values) != 1 or not _readable(unescaped(references.resolved(values[0]))):
        yield "its values are not one JSON document of manifests"
    yield from _changed(stack.folder / str(release["chart"]))


def _readable(values: str) -> bool:
    try:
        read = json.loads(values)
    except ValueError:
        return False
    return isinstance(read, dict) and set(read) == {"manifests"} and all(isinstance(one, dict) for one in read["manifests"])


def _changed(chart: Path) -> Iterator[str]:
    found = {file.relative_to(chart).as_posix(): file for file in _files(chart)}
    for name in sorted(set(found) - _FILES):
        yield f"its chart also has {name}"
    template = found.get("templates/manifests.yaml")
    if template is None or template.read_text(encoding="utf-8") != _TEMPLATE:
        yield "its chart's template creates something else than its values"


def _files(chart: Path) -> Sequence[Path]:
    return [file for file in chart.rglob("*") if file.is_file()]
