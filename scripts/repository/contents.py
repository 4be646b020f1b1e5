"""The files of a new repository."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path

from penstock.scripts.repository.answers import Answers
from penstock.scripts.repository.environments import environments
from penstock.scripts.repository.pipelines import pipelines

_SUFFIX = ".template"
_PACKAGE = "package/"
# Under their own names they would hide files of the kit.
_HIDDEN = ("gitignore", "dockerignore")
_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")


def contents(answers: Answers, version: str) -> Mapping[str, str]:
    """Path in the repository -> text of all files, sorted.

    Args:
        answers: what it is made with.
        version: of the kit.
    """
    found = {**dict(_from_templates(answers, version)), **pipelines(), **_of_node(answers)}
    found |= {f"environments/{name}.yaml": text for name, text in environments(answers).items()}
    return dict(sorted(found.items()))


def _from_templates(answers: Answers, version: str) -> Iterator[tuple[str, str]]:
    values = {
        "name": answers.name,
        "package": answers.package,
        "version": version,
        "region": answers.region,
        # An emulated AWS has no cluster of others.
        "emulated": "production" if answers.cluster is None else "dev",
    }
    folder = Path(str(files(__package__))) / "template"
    for file in folder.rglob(f"*{_SUFFIX}"):
        path = file.relative_to(folder).as_posix().removesuffix(_SUFFIX)
        if path in _HIDDEN:
            path = f".{path}"
        if path.startswith(_PACKAGE):
            path = f"{answers.package}/{path.removeprefix(_PACKAGE)}"
        yield path, _PLACEHOLDER.sub(lambda match: values[match[1]], file.read_text(encoding="utf-8"))


def _of_node(answers: Answers) -> Mapping[str, str]:
    """cdktf-cli in the version that the kit is tested with, by its lock."""
    folder = Path(str(files("penstock.scripts.installation"))) / "data/node"
    manifest, lock = (json.loads((folder / name).read_text(encoding="utf-8")) for name in ("package.json", "package-lock.json"))
    for one in (manifest, lock, lock["packages"][""]):
        one["name"] = answers.name
    return {"package.json": _json(manifest), "package-lock.json": _json(lock)}


def _json(document: object) -> str:
    return json.dumps(document, indent=2) + "\n"
