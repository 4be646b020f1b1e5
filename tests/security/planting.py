"""Plants faults in synthesized stacks, one fault a copy, and keeps of each copy only what the fault is in."""

from __future__ import annotations

import copy
import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.scripts.provisioning.stacks import Stack
from penstock.scripts.security.references import References

Content = dict[str, Any]
# A reference to a resource, without the attribute's end.
_RESOURCE = re.compile(r"\$\{(?P<address>aws_[a-z0-9_]+\.[\w-]+)\.[\w.\[\]-]+\}")


@dataclass(frozen=True)
class Fault:
    """A fault.

    Args:
        name: of the copy; the paths of its findings begin with it.
        stack: the stack that it is planted in.
        change: plants it, in the stack's content or in one manifest.
        rules: rules that must fail, all of them at `path`.
        path: the failing object, as the gate names it below the stack.
        keep: addresses of resources that stay in the copy; of a release, its address and the kinds of the manifests that stay.
        kinds: kinds of manifests that stay; `change` gets the first of them.
    """

    name: str
    stack: str
    change: Callable[[Any], None]
    rules: Sequence[str]
    path: str
    keep: Sequence[str] = ()
    kinds: Sequence[str] = field(default=())

    @property
    def scanned(self) -> bool:
        """Whether it takes the scanner to find it."""
        return any(rule.startswith("CKV") for rule in self.rules)


def planted(fault: Fault, stacks: Mapping[str, Stack], references: References) -> Stack:
    """A copy of a stack with a fault."""
    stack = stacks[fault.stack]
    folder = stack.folder.parent / fault.name
    shutil.copytree(stack.folder, folder)
    content = copy.deepcopy(stack.content())
    if fault.kinds:
        _in_manifests(content, fault)
    else:
        fault.change(content)
    _reduce(content, fault.keep or [fault.path], references)
    (folder / "cdk.tf.json").write_text(json.dumps(content), encoding="utf-8")
    return Stack(fault.name, folder, stack.dependencies)


def _in_manifests(content: Content, fault: Fault) -> None:
    kind, name = fault.keep[0].split(".", 1)
    release = content["resource"][kind][name]
    manifests = json.loads(release["values"][0])["manifests"]
    kept = [next(manifest for manifest in manifests if manifest["kind"] == kind) for kind in fault.kinds]
    fault.change(kept[0])
    release["values"] = [json.dumps({"manifests": kept})]


def _reduce(content: Content, keep: Sequence[str], references: References) -> None:
    resources = content["resource"]
    kept: Content = {}
    for address in keep:
        kind, name = address.split(".", 1)
        arguments = {key: value for key, value in resources[kind][name].items() if key != "depends_on"}
        kept.setdefault(kind, {})[name] = _without_others(arguments, keep, references)
    content["resource"] = kept
    content.pop("output", None)


def _without_others(value: Any, keep: Sequence[str], references: References) -> Any:
    """With placeholders for what is not kept, so that Terraform can plan what is."""
    if isinstance(value, Mapping):
        return {key: _without_others(one, keep, references) for key, one in value.items()}
    if isinstance(value, list):
        return [_without_others(one, keep, references) for one in value]
    if not isinstance(value, str):
        return value
    return _RESOURCE.sub(lambda match: match[0] if match["address"] in keep else references.resolved(match[0]), value)
