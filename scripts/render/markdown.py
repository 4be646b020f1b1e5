"""Parts of a comment on a pull request, in GitHub's Markdown."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, right: Collection[int] = (1, 2)) -> list[str]:
    """Lines of a table.

    Args:
        head: of its columns.
        rows: their cells, any text.
        right: numbers of the columns that are aligned to the right, from 0.
    """
    rule = ["---:" if at in right else "---" for at in range(len(head))]
    return [_row(head), f"| {' | '.join(rule)} |", *(_row(row) for row in rows)]


def bullets(texts: Iterable[str]) -> list[str]:
    """Lines of a list."""
    return [f"- {text(one)}" for one in texts]


def folded(summary: str, rows: Sequence[str]) -> list[str]:
    """Lines that are shown on a click.

    Args:
        summary: what is shown before, in Markdown.
        rows: the lines.
    """
    return ["<details>", f"<summary>{summary}</summary>", "", *rows, "", "</details>"]


def text(any_text: str) -> str:
    """Text escaped for Markdown: names come from the user's files."""
    return re.sub(r"([\\`|<>\[\]_*~])", r"\\\1", " ".join(any_text.split()))


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(text(cell) for cell in cells)} |"
