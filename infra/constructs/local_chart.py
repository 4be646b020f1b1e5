"""A Helm release of the local chart, which applies the given manifests."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cdktf import AssetType, TerraformAsset, TerraformStack
from constructs import Construct, IDependable

from penstock.infra.helm_bindings import helm

CHART = Path(__file__).parent.parent / "charts/manifests"
# A new node has to boot and pull the image before a pod of the release is ready.
DEFAULT_TIMEOUT_S = 600
_ASSET = "manifests-chart"
# Text that Terraform would parse as an expression; cdktf's own tokens are excluded.
_EXPRESSION = re.compile(r"\$\{(?!TfToken\[)|%\{")


class LocalChart(Construct):
    """The release: its chart is in the stack's folder, its values contain the manifests.

    Args:
        scope: the stack, or a construct in it.
        id: the release's logical id, unique in the stack.
        name: of the release, unique in its namespace.
        namespace: of Helm's release record; must exist. Each manifest has its own namespace.
        manifests: contents of the release. May contain tokens of other stacks' values.
        wait: whether the release waits until all its resources are ready.
        timeout_s: timeout of that, in seconds.
        depends_on: resources that must exist first.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        name: str,
        namespace: str,
        manifests: Sequence[Mapping[str, Any]],
        wait: bool = True,
        timeout_s: int = DEFAULT_TIMEOUT_S,
        depends_on: Iterable[IDependable] = (),
    ) -> None:
        super().__init__(scope, id)
        release = helm.release.Release(
            self,
            "release",
            name=name,
            namespace=namespace,
            chart=_chart(TerraformStack.of(self)),
            values=[values(manifests)],
            create_namespace=False,
            # A failed first release is removed, a failed upgrade is rolled back: no release stays half applied.
            atomic=wait,
            wait=wait,
            timeout=timeout_s,
            max_history=10,
            depends_on=list(depends_on),
        )
        release.override_logical_id(id)
        self.release = release


def values(manifests: Sequence[Mapping[str, Any]]) -> str:
    """The chart's values as JSON, which is valid YAML. Text that looks like a Terraform expression is escaped.

    Args:
        manifests: in the form of the Kubernetes API.
    """
    text = json.dumps({"manifests": list(manifests)}, ensure_ascii=False)
    return _EXPRESSION.sub(lambda match: match.group()[0] + match.group(), text)


def _chart(stack: TerraformStack) -> str:
    """The chart's path relative to the stack's folder, into which it is copied once."""
    asset = stack.node.try_find_child(_ASSET)
    if asset is None:
        # Computed here because cdktf's hash depends on the folder of the checkout.
        asset = TerraformAsset(stack, _ASSET, path=str(CHART), type=AssetType.DIRECTORY, asset_hash=_content_hash(CHART))
    path: str = asset.path  # type: ignore[attr-defined]
    # Helm would search a repository for a bare name.
    return f"./{path}"


def _content_hash(folder: Path) -> str:
    digest = hashlib.sha256()
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(f"{file.relative_to(folder).as_posix()}\0".encode() + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]
