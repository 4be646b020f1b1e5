"""``python -m penstock.scripts.dev.api_reference > docs/api.md``: the page of the public names of ``penstock``."""

from __future__ import annotations

import inspect

import penstock

# Home of a name, or the package that it lies in -> the page that explains it.
_PAGES = {
    "penstock.jobs.blocks.calls": "blocks/calls.md",
    "penstock.jobs.blocks.changes": "blocks/windows.md",
    "penstock.jobs.blocks.joins": "blocks/joins.md",
    "penstock.jobs.blocks.keyed": "blocks/state.md",
    "penstock.jobs.blocks.windows": "blocks/windows.md",
    "penstock.jobs.job": "blocks/README.md",
    "penstock.jobs.local": "job-spec.md",
    "penstock.jobs.sinks": "blocks/sinks.md",
    "penstock.jobs.stream.skew": "blocks/skew.md",
    "penstock.jobs.stream": "blocks/README.md",
}
# Names without a docstring of their own: type aliases and a column's name.
_VALUES = {
    "DELETED": "The column that marks a row as deleted, ``_deleted``.",
    "Emit": "When a window's results are emitted: ``final`` or ``updates``.",
    "Out": "What a keyed function returns: rows as mappings, or None.",
}


def page_of(name: str) -> str:
    """The page below docs/ that explains a name."""
    home = penstock.home_of(name)
    return next(page for prefix, page in _PAGES.items() if home == prefix or home.startswith(f"{prefix}."))


def summary(name: str) -> str:
    """The first sentence of a name's docstring; empty if it has none."""
    if name in _VALUES:
        return _VALUES[name]
    text = getattr(penstock, name).__doc__ or ""
    return " ".join(inspect.cleandoc(text).split("\n\n")[0].split()).split(". ")[0].rstrip(".") + "."


def rendered() -> str:
    """The page, in Markdown."""
    head = [
        "# The API",
        "",
        "<!-- Written by `python -m penstock.scripts.dev.api_reference > docs/api.md`; a test fails where it is out of date. -->",
        "",
        "What an app and its tests import: `from penstock import Job, Tag, tumbling`. All else is internal and may change without notice.",
        "The list stays open until 0.1.0.",
        "",
        "| name | what it is | page |",
        "|---|---|---|",
    ]
    rows = [f"| `{name}` | {summary(name).replace('|', chr(92) + '|')} | [{page_of(name)}]({page_of(name)}) |" for name in penstock.__all__]
    return "\n".join([*head, *rows]) + "\n"


if __name__ == "__main__":
    print(rendered(), end="")
