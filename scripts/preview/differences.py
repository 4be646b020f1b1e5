"""Rows of an output that two runs have written, compared by key."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

Row = Mapping[str, Any]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)


class ChangedRow(_Model):
    """A row of a key whose other values differ.

    Args:
        before: as the old code writes it.
        after: as the new code does.
    """

    before: dict[str, Any]
    after: dict[str, Any]


class OutputDifference(_Model):
    """What differs in an output.

    Args:
        output: name of the sink.
        key: columns that rows are compared by; without any, whole rows are.
        before: rows of the old code.
        after: rows of the new code.
        added: rows that only the new code writes.
        gone: rows that only the old code writes.
        changed: rows of the same key with other values.
        added_rows: the first of them.
        gone_rows: the first of them.
        changed_rows: the first of them.
    """

    output: str
    key: tuple[str, ...] = ()
    before: int
    after: int
    added: int = 0
    gone: int = 0
    changed: int = 0
    added_rows: tuple[dict[str, Any], ...] = ()
    gone_rows: tuple[dict[str, Any], ...] = ()
    changed_rows: tuple[ChangedRow, ...] = ()

    @property
    def same(self) -> bool:
        """Whether both have written the same rows."""
        return not (self.added or self.gone or self.changed)


def compared(
    output: str, before: Iterable[Row], after: Iterable[Row], key: Sequence[str] = (), ignored: Sequence[str] = (), examples: int = 5
) -> OutputDifference:
    """Compares the rows of an output, in whatever order they are.

    A key may have several rows, such as updates or windows: those that both runs have written are the same, the rest is paired in the
    order of its values.

    Args:
        output: name of the sink.
        before: rows of the old code.
        after: rows of the new code.
        key: columns that rows are compared by.
        ignored: columns that are not compared.
        examples: how many rows of each kind are kept.
    """
    old, new = _counted(before, ignored), _counted(after, ignored)
    left, right = _by_key(old - new, key), _by_key(new - old, key)
    added: list[dict[str, Any]] = []
    gone: list[dict[str, Any]] = []
    changed: list[ChangedRow] = []
    for one in sorted({*left, *right}):
        for was, now in _paired(left[one], right[one], keyed=bool(key)):
            if was is not None and now is not None:
                changed.append(ChangedRow(before=json.loads(was), after=json.loads(now)))
            elif was is not None:
                gone.append(json.loads(was))
            elif now is not None:
                added.append(json.loads(now))
    return OutputDifference(
        output=output,
        key=tuple(key),
        before=old.total(),
        after=new.total(),
        added=len(added),
        gone=len(gone),
        changed=len(changed),
        added_rows=tuple(added[:examples]),
        gone_rows=tuple(gone[:examples]),
        changed_rows=tuple(changed[:examples]),
    )


def _counted(rows: Iterable[Row], ignored: Sequence[str]) -> Counter[str]:
    """Row as JSON, independent of the order of its columns -> how often it is there."""
    return Counter(_text({name: value for name, value in row.items() if name not in ignored}) for row in rows)


def _by_key(rows: Counter[str], key: Sequence[str]) -> defaultdict[str, list[str]]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for text in sorted(rows.elements()):
        row = json.loads(text)
        found[_text([row.get(name) for name in key])].append(text)
    return found


def _paired(left: Sequence[str], right: Sequence[str], *, keyed: bool) -> Iterator[tuple[str | None, str | None]]:
    if keyed:
        yield from zip_longest(left, right)
        return
    yield from ((was, None) for was in left)
    yield from ((None, now) for now in right)


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
