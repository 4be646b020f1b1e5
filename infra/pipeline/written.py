"""The pipelines as files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from penstock.infra.pipeline import concourse, github_actions
from penstock.infra.pipeline.steps import KIT, Repository

FOLDER = Path(__file__).parent
_HEAD = "# Written by `python -m penstock.infra.pipeline` from infra/pipeline/*.py: edit those. Prerequisites: docs/pipeline.md.\n"


class _Dumper(yaml.SafeDumper):
    """Scripts are written as block scalars, and YAML aliases are not used."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def files() -> dict[Path, str]:
    """Path -> text of each pipeline."""
    return {
        FOLDER / "concourse.yaml": _HEAD + concourse_text(KIT),
        FOLDER / "github-actions.yaml": _HEAD + github_actions_text(KIT),
    }


def concourse_text(repository: Repository) -> str:
    """The pipeline of a repository for Concourse."""
    return _yaml(concourse.pipeline(repository))


def github_actions_text(repository: Repository) -> str:
    """The pipeline of a repository as a workflow of GitHub Actions."""
    return _with_versions(_yaml(github_actions.workflow(repository)))


def _yaml(document: dict[str, Any]) -> str:
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=140)


def _with_versions(text: str) -> str:
    """The release next to each commit: read by dependency-update tools and by people."""
    for action, (commit, version) in github_actions.ACTIONS.items():
        text = text.replace(f"{action}@{commit}\n", f"{action}@{commit} # {version}\n")
    return text
