"""Whether the state in a checkpoint is that of the queries that are to go on with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from penstock.jobs.driver.errors import StateDiffers
from penstock.jobs.storage.query_record import Operator, QueryRecord

_FIX = (
    "restore what the operator had (a column can get another name after it); or begin without the state: upgradeMode: stateless and another"
    " restartNonce; or, if the state means the same, checkpoint.stateSchema: any"
)

_MODE_FIX = (
    "keep output_mode; or begin without the state: upgradeMode: stateless and another restartNonce; or, to lose those groups,"
    " checkpoint.stateSchema: any"
)


def state_changes(before: Mapping[str, QueryRecord], now: Mapping[str, QueryRecord]) -> Iterator[StateDiffers]:
    """The operators whose state in the checkpoint is another one than theirs.

    Args:
        before: query -> its record in the generation whose checkpoint it is; the first query's name is empty.
        now: the same of the queries that go on with it.
    """
    for name in sorted(before.keys() & now.keys()):
        query = f"query {name}" if name else "the query"
        yield from _of_query(query, before[name].operators, now[name].operators)
        yield from _of_mode(query, before[name], now[name])


def _of_query(query: str, before: tuple[Operator, ...], now: tuple[Operator, ...]) -> Iterator[StateDiffers]:
    if [one.name for one in before] != [one.name for one in now]:
        yield StateDiffers(path=query, given=_names(now), need=f"the operators whose state the checkpoint has: {_names(before)}", fix=_FIX)
        return
    for old, new in zip(before, now, strict=True):
        differences = new.state.differences(old.state) if old.state is not None and new.state is not None else []
        if differences:
            path = f"{query}, operator {new.id} ({new.name})"
            yield StateDiffers(path=path, given="; ".join(differences), need="the state that the checkpoint has", fix=_FIX)


def _of_mode(query: str, before: QueryRecord, now: QueryRecord) -> Iterator[StateDiffers]:
    """Groups that append holds back until they close would never come out of update, unless they change again.

    Source: Spark 4.3.0, StateStoreSaveExec, which evicts closed groups in update mode without a row.
    """
    groups = any(operator.name == "Aggregate" for operator in before.operators)
    if groups and (before.output_mode, now.output_mode) == ("append", "update"):
        need = "output mode append, by which the groups in the checkpoint come out when they close; by update, only with further rows"
        yield StateDiffers(path=query, given="output mode update", need=need, fix=_MODE_FIX)


def _names(operators: tuple[Operator, ...]) -> str:
    """In the order in which rows pass them."""
    return ", ".join(one.name for one in reversed(operators)) or "no stateful operators"
