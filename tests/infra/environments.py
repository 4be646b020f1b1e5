"""The shipped production environment with small changes, as a file or parsed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from penstock.infra.environment import Environment
from penstock.infra.environment_file import FOLDER, load

# An environment without a cluster.
BARE = str(Path(__file__).parent / "bare.yaml")

Change = Callable[[dict[str, Any]], None]


def written(folder: Path, change: Change | None = None) -> Path:
    """The production environment as a file in a folder, with a changed spec."""
    document: dict[str, Any] = yaml.safe_load((FOLDER / "production.yaml").read_text("utf-8"))
    document["spec"]["jobs"] = [str((FOLDER / path).resolve()) for path in document["spec"]["jobs"]]
    if change is not None:
        change(document["spec"])
    path = folder / "environment.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False), "utf-8")
    return path


def read(folder: Path, change: Change | None = None) -> Environment:
    """As `written`, parsed."""
    return load(written(folder, change))


def pool(spec: dict[str, Any], name: str) -> dict[str, Any]:
    """A NodePool of a spec."""
    selected: dict[str, Any] = next(one for one in spec["nodes"]["pools"] if one["name"] == name)
    return selected
