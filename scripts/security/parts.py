"""Parts of a scan: a stack or the image, with what the scanner reads of it and what the gate finds itself."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import yaml

from penstock.scripts.provisioning.stacks import Stack
from penstock.scripts.security import helm_releases, object_digest, own_rules, pod_templates, policy_rules, suppressions
from penstock.scripts.security.finding import Finding
from penstock.scripts.security.plan_filling import filled
from penstock.scripts.security.references import References

TERRAFORM, KUBERNETES, DOCKERFILE = "terraform_plan", "kubernetes", "dockerfile"
IMAGE = "Dockerfile"
_WORKLOADS = pod_templates.SCANNED - {"Pod"}


class Part(NamedTuple):
    """A part of a scan.

    Args:
        name: the stack's, or ``Dockerfile``.
        framework: the scanner's name of its language.
        text: what the scanner reads; of an AWS stack the configuration, which has to be planned first.
        expected: number of resources that the scanner must have parsed.
        findings: findings of Penstock's own rules.
        digests: digest of each object, by its path.
    """

    name: str
    framework: str
    text: str
    expected: int
    findings: tuple[Finding, ...]
    digests: Mapping[str, str]

    def with_digest(self, finding: Finding) -> Finding:
        """The finding with the digest of the object that it is about.

        The path of a scanner's finding may be longer than the object's: the pods of a workload have one of their own.
        """
        named = [path for path in self.digests if finding.path == path or finding.path.startswith((f"{path}.", f"{path}[", f"{path}/"))]
        return finding.model_copy(update={"digest": self.digests[max(named, key=len)] if named else object_digest.of_text(self.text)})


def of_stack(stack: Stack, references: References, names: Mapping[str, str]) -> Part:
    """The part of a stack.

    Args:
        stack: a synthesized stack.
        references: the placeholders.
        names: names that are not part of digests, with what stands for each.
    """
    return _of_charts(stack, references, names) if stack.on_kubernetes else _of_aws(stack, references, names)


def of_image(dockerfile: str, name: str = IMAGE) -> Part:
    """The part of an image.

    Args:
        dockerfile: text of its Dockerfile.
        name: of the part.
    """
    found = tuple(suppressions.in_text(dockerfile, name))
    return Part(name, DOCKERFILE, suppressions.without(dockerfile), 1, found, {name: object_digest.of_text(dockerfile)})


def planned(part: Part, plan: Mapping[str, Any], stack: Stack, references: References) -> Part:
    """The part of an AWS stack with its plan.

    Args:
        part: the part.
        plan: the stack's plan.
        stack: the stack.
        references: the placeholders.
    """
    return part._replace(text=json.dumps(filled(plan, stack, references)))


def _of_aws(stack: Stack, references: References, names: Mapping[str, str]) -> Part:
    found = [*_suppressed(stack), *own_rules.of_stack(stack), *policy_rules.findings(stack, references)]
    digests = {f"{stack.name}/{address}": object_digest.of_resource(arguments, names) for address, arguments in stack.resources()}
    text = json.dumps(references.resolved(stack.content()), sort_keys=True)
    return Part(stack.name, TERRAFORM, text, len(stack.resources()), tuple(found), digests)


def _of_charts(stack: Stack, references: References, names: Mapping[str, str]) -> Part:
    found = [*helm_releases.findings(stack, references), *own_rules.of_stack(stack)]
    digests = {
        helm_releases.path_of(stack, address, arguments): object_digest.of_resource(arguments, names)
        for address, arguments in stack.resources()
    }
    objects: list[dict[str, Any]] = []
    for manifest in helm_releases.manifests(stack, references):
        path = f"{stack.name}/{_path(manifest)}"
        templates = pod_templates.of(manifest, path)
        found += templates.findings
        for one in (manifest, *templates.pods):
            path = f"{stack.name}/{_path(one)}"
            digests[path] = object_digest.of_manifest(one, names)
            found += [*suppressions.in_document(one, path), *own_rules.of_manifest(one, path)]
            objects.append(suppressions.document_without(one))
    text = yaml.dump_all(objects, sort_keys=False, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper))
    # The scanner counts a workload and its pod separately.
    expected = len(objects) + sum(one.get("kind") in _WORKLOADS for one in objects)
    return Part(stack.name, KUBERNETES, text, expected, tuple(found), digests)


def _suppressed(stack: Stack) -> Iterable[Finding]:
    for address, arguments in stack.resources():
        yield from suppressions.in_document(arguments, f"{stack.name}/{address}")


def _path(manifest: Mapping[str, Any]) -> str:
    """The scanner's name of an object."""
    metadata = manifest.get("metadata") or {}
    return f"{manifest.get('kind')}.{metadata.get('namespace', 'default')}.{metadata.get('name')}"
