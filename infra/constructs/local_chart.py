"""A Helm release of the one local chart, which applies the manifests that it is given."""

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
# A new node has to boot and to pull the image before a pod of the release is ready.
DEFAULT_TIMEOUT_S = 600
_ASSET = "manifests-chart"
# What Terraform would take for an expression in a text; cdktf's own tokens are meant as such.
_EXPRESSION = re.compile(r"\$\{(?!TfToken\[)|%\{")


class LocalChart(Construct):
    """The release: its chart lies in the stack's folder, its values hold the manifests.

    Args:
        scope: the stack, or a construct in it.
        id: the release's logical id, which no other release of the stack has.
        name: of the release; its namespace has no other of that name.
        namespace: where Helm notes the release; it must be there already. Each manifest names its own.
        manifests: what the release consists of. Values of other stacks may stand in their texts.
        wait: whether the release is done only when all that it starts is ready.
        timeout_s: for how long that may take, in seconds.
        depends_on: what has to be there before.
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
            # A first release that failed is taken away, a later one goes back to what was there: no half of one stays.
            atomic=wait,
            wait=wait,
            timeout=timeout_s,
            max_history=10,
            depends_on=list(depends_on),
        )
        release.override_logical_id(id)
        self.release = release


def values(manifests: Sequence[Mapping[str, Any]]) -> str:
    """The chart's values as JSON, which is YAML too; what would read as an expression of Terraform's stays text.

    Args:
        manifests: as the Kubernetes API takes them.
    """
    text = json.dumps({"manifests": list(manifests)}, ensure_ascii=False)
    return _EXPRESSION.sub(lambda found: found.group()[0] + found.group(), text)


def _chart(stack: TerraformStack) -> str:
    """The chart's path as seen from the stack's folder, into which it is copied once."""
    found = stack.node.try_find_child(_ASSET)
    if found is None:
        # A hash of our own: cdktf's depends on the folder that the checkout lies in.
        found = TerraformAsset(stack, _ASSET, path=str(CHART), type=AssetType.DIRECTORY, asset_hash=_content_hash(CHART))
    path: str = found.path  # type: ignore[attr-defined]
    # Helm would look for a bare name in a repository.
    return f"./{path}"


def _content_hash(folder: Path) -> str:
    digest = hashlib.sha256()
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(f"{file.relative_to(folder).as_posix()}\0".encode() + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]
