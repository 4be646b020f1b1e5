"""Calls of functions within an expression, by its tokens."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from penstock.jobs.sql.tokens import Fragment, Script, Token, tokens


@dataclass(frozen=True)
class SoleCall:
    """An expression that is the call of one function.

    Args:
        name: of the function, as written.
        arguments: its arguments.
    """

    name: str
    arguments: tuple[str, ...]


def sole_call(script: Script, expression: Fragment) -> SoleCall | None:
    """The call that an expression is; None if it is anything else."""
    some = _tokens(script, expression)
    if len(some) < 3 or some[0].kind not in ("word", "quoted") or (some[1].text, some[-1].text) != ("(", ")"):
        return None
    inside = some[2:-1]
    if any(token.depth == 0 for token in inside):
        return None
    commas = [token.start for token in inside if token.text == "," and token.depth == 1]
    starts = [some[1].end, *(start + 1 for start in commas)]
    texts = [expression.text[start:end].strip() for start, end in zip(starts, [*commas, some[-1].start], strict=True)]
    return SoleCall(some[0].text.strip("`"), tuple(texts) if inside else ())


def called(script: Script, expression: Fragment, functions: Collection[str]) -> Iterator[str]:
    """Those of these functions that an expression calls.

    Args:
        script: that has it.
        expression: in Spark SQL.
        functions: names in lower case.
    """
    for token, after in itertools.pairwise(_tokens(script, expression)):
        if after.text == "(" and token.kind in ("word", "quoted") and token.text.strip("`").lower() in functions:
            yield token.text


def _tokens(script: Script, expression: Fragment) -> list[Token]:
    return tokens(Script(script.path, expression.text))
