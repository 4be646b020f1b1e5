"""The examples of the pages on blocks: each parses, matches the signatures that it calls, and is part of a valid spec."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.jobs import spec
from penstock.jobs.job import Job
from penstock.jobs.spec import Sink
from penstock.jobs.spec.app_module import STATEFUL_BLOCKS
from penstock.jobs.spec.kinds import keys_of
from penstock.jobs.stream.streams import Stream
from penstock.scripts.layout import ROOT
from tests.docs.test_documents import _blocks, _prose

FOLDER = ROOT / "docs/blocks"
PAGES = sorted(FOLDER.glob("*.md"))
SPECS = sorted((ROOT / "jobs/specs").glob("*.yaml"))
SPEC = {"app": "app", "parallelism": 2, "executor": {"slots": 2, "memory": "2g"}}
STEPS = ("select", "filter", "explode", "divert", "transform")


def _examples(language: str) -> list[Any]:
    return [
        pytest.param(page, block, id=f"{page.stem}-{number}")
        for page in PAGES
        for number, block in enumerate(_blocks(page, language), start=1)
    ]


def _imported(tree: ast.Module) -> dict[str, Any]:
    """Name -> what an example imports of this house."""
    imported: dict[str, Any] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("penstock"):
            module = importlib.import_module(node.module or "")
            imported |= {name.asname or name.name: getattr(module, name.name) for name in node.names}
    return imported


def _calls(tree: ast.Module) -> Iterator[tuple[ast.Call, inspect.Signature]]:
    """The calls of an example whose functions are known, each with its signature."""
    known = _imported(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Name) and node.func.id in known and not _is_an_error(known[node.func.id]):
            yield node, inspect.signature(known[node.func.id])
        elif isinstance(node.func, ast.Attribute) and (method := _method(node.func)):
            yield node, inspect.signature(method.__get__(object()))


def _is_an_error(imported: object) -> bool:
    return isinstance(imported, type) and issubclass(imported, Exception)


def _method(called: ast.Attribute) -> Any:
    """A method of the job or of a stream; streams go by the names of variables or are what another step gives."""
    if isinstance(called.value, ast.Name) and called.value.id == "job":
        return getattr(Job, called.attr)
    of_a_stream = isinstance(called.value, ast.Name | ast.Call)
    return getattr(Stream, called.attr, None) if of_a_stream and called.attr in STEPS else None


@pytest.mark.parametrize(("page", "text"), _examples("python"))
def test_the_calls_of_an_example_match_the_signatures(page: Path, text: str) -> None:
    for call, signature in _calls(ast.parse(text, filename=page.name)):
        named = {word.arg: ast.unparse(word.value) for word in call.keywords if word.arg}
        signature.bind(*(ast.unparse(argument) for argument in call.args), **named)


@pytest.mark.parametrize(("page", "text"), _examples("yaml"))
def test_an_example_of_a_spec_is_valid(page: Path, text: str, tmp_path: Path) -> None:
    part = yaml.safe_load(text)
    document = {"apiVersion": "penstock/v1", "kind": "StreamingJob", "metadata": {"name": page.stem.lower()}, "spec": {**SPEC, **part}}
    path = tmp_path / "job.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    assert set(part) <= set(document["spec"])
    spec.load(path)


def test_every_stateful_block_has_an_example() -> None:
    text = "\n".join(block for page in PAGES for block in _blocks(page, "python"))
    called = {node.func.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    assert set(STATEFUL_BLOCKS) - called == set()


def test_every_kind_of_sink_is_documented() -> None:
    text = _prose(FOLDER / "sinks.md")
    assert [kind for kind in keys_of(Sink) if f"`{kind}`" not in text] == []


def test_every_page_is_listed() -> None:
    listed = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert [page.name for page in PAGES if page.name != "README.md" and f"]({page.name})" not in listed] == []


def test_every_shipped_spec_is_listed() -> None:
    text = (ROOT / "docs/jobs.md").read_text(encoding="utf-8")
    table = text[text.index("## The shipped jobs") :]
    assert [path.stem for path in SPECS if f"`{path.stem}`" not in table] == []
