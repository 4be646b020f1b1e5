"""The tutorials of docs/tutorials, and a new repository with the files that one of them shows."""

from __future__ import annotations

from pathlib import Path

from penstock.scripts.layout import ROOT
from tests.docs.test_documents import _files
from tests.scripts.cli.called import penstock

# Page -> what its job's spec, app and test are called.
JOBS = {"from-pyspark": "revenue", "from-flink": "spending", "from-flink-sql": "top_pages"}


def page(name: str) -> Path:
    """The page of a tutorial."""
    return ROOT / f"docs/tutorials/{name}.md"


def repository(name: str, folder: Path) -> Path:
    """Makes the repository of a tutorial as its page says.

    Args:
        name: of the tutorial.
        folder: where; it exists.
    """
    made = penstock("init", "shop", "--yes", cwd=folder)
    assert made.returncode == 0, made.stderr
    for file, text in _files(page(name)).items():
        (folder / "shop" / file).write_text(text, encoding="utf-8")
    return folder / "shop"
