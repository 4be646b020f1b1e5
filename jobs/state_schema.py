"""What a stateful operator keeps in its state: the columns of its keys and values, and what else decides what they mean.

Spark compares only the types of a checkpoint's state with those of the query. A renamed column, or two aggregates of one type that have
changed places, pass, and the state of one is read as that of the other. So the names are compared here as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class _Stored(BaseModel):
    model_config = ConfigDict(frozen=True, alias_generator=to_camel, validate_by_name=True)


class Column(_Stored):
    """A column of the state.

    Args:
        name: of the column; of an aggregate its expression, such as ``sum(amount)``.
        type: as in Spark's DDL; of an aggregate those of its buffer.
    """

    name: str
    type: str


class StateSchema(_Stored):
    """The state of a stateful operator.

    Args:
        keys: the columns by which it is partitioned and found.
        values: the columns that it keeps for a key, in their order.
        details: what else must not change, by its name, such as the type of a join.
        filters: conditions that the app applies after the operator and Spark before it, so that what the state has already of rows that
            they reject comes out; None in records of earlier releases.
    """

    keys: tuple[Column, ...] = ()
    values: tuple[Column, ...] = ()
    details: dict[str, str] = {}
    filters: tuple[str, ...] | None = None

    def differences(self, other: StateSchema) -> list[str]:
        """What differs from another one, for people: what is here, and what is there.

        Args:
            other: the state in the checkpoint.
        """
        details = (
            f"{name} {self.details.get(name, 'none')} instead of {other.details.get(name, 'none')}"
            for name in sorted({*self.details, *other.details})
            if self.details.get(name) != other.details.get(name)
        )
        columns = [*_columns("key", self.keys, other.keys), *_columns("value", self.values, other.values)]
        return [*columns, *details, *_moved(self.filters, other.filters)]


def _moved(here: Sequence[str] | None, there: Sequence[str] | None) -> Iterator[str]:
    if here is not None and there is not None and here != there:
        yield f"filters after it, which Spark moves before it, {'; '.join(here) or 'none'} instead of {'; '.join(there) or 'none'}"


def _columns(what: str, here: Sequence[Column], there: Sequence[Column]) -> Iterator[str]:
    """The columns that differ: each by its name, or all of them where only their order does."""
    types, before = {column.name: column.type for column in here}, {column.name: column.type for column in there}
    added, removed = [name for name in types if name not in before], [name for name in before if name not in types]
    if added or removed:
        yield f"{what} {_listed(added)} instead of {_listed(removed)}"
    for name in types.keys() & before.keys():
        if types[name] != before[name]:
            yield f"{what} {name} {types[name]} instead of {before[name]}"
    if not added and not removed and [column.name for column in here] != [column.name for column in there]:
        yield f"{what}s in the order {_listed(list(types))} instead of {_listed(list(before))}"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"
