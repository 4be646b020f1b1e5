"""Statements of an SQL app, as parsed.

References are kept with their position, so that every error has its line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from penstock.jobs.sql.tokens import Fragment

How = Literal["inner", "left", "full"]
# Kind of join -> its block.
JOIN_BLOCKS = {
    "interval": "interval_join",
    "window": "window_join",
    "temporal": "temporal_join",
    "regular": "regular_join",
    "broadcast": "broadcast_join",
    "lookup": "lookup_join",
}
# The stateless ones of these blocks, see `penstock.jobs.spec.app_module.STATEFUL_BLOCKS`.
_STATELESS = {"lookup_join"}


@dataclass(frozen=True)
class Window:
    """``TUMBLE('5m')``, ``HOP('10m' EVERY '1m')``, ``SESSION('30m')``, ``CUMULATE('1h' STEP '10m')`` or ``ROWS(10 EVERY 1)``; or that
    of the view, whose rows have ``window_start`` and ``window_end``.
    """

    kind: Literal["tumble", "hop", "session", "cumulate", "rows", "same"]
    size: str
    step: str | None
    offset: str
    place: Fragment


@dataclass(frozen=True)
class Item:
    """A column of a SELECT; the name of a star is ``*``."""

    expression: Fragment
    name: str


@dataclass(frozen=True)
class Ref:
    """A view or source in a FROM, its alias and its key."""

    view: Fragment
    alias: str
    unique: tuple[str, ...] = ()


@dataclass(frozen=True)
class Within:
    """``WITHIN '-5m' AND '5m' [BETWEEN expression AND expression]``: an interval join."""

    kind: ClassVar[str] = "interval"
    lower: str
    upper: str
    between: tuple[Fragment, Fragment] | None = None


@dataclass(frozen=True)
class InWindow:
    """``IN TUMBLE('5m')``: a window join."""

    kind: ClassVar[str] = "window"
    window: Window


@dataclass(frozen=True)
class Regular:
    """``EMIT CHANGES`` or ``EMIT CURRENT``, optionally after how long rows are ``KEPT``: a regular join."""

    kind: ClassVar[str] = "regular"
    emit: Literal["changes", "current"]
    kept: str | None


@dataclass(frozen=True)
class Join:
    """The joined side of a FROM.

    Args:
        way: kind of the join; a kind without parameters is its name.
        how: which rows without a match are emitted.
        right: the joined side; the table of a lookup.
        keys: pairs of a field of the left side and one of the right side.
        condition: condition after ON.
    """

    way: Within | InWindow | Regular | Literal["temporal", "broadcast", "lookup"]
    how: How
    right: Ref
    keys: tuple[tuple[str, str], ...]
    condition: Fragment

    @property
    def kind(self) -> str:
        """Key of the kind in `JOIN_BLOCKS`."""
        return self.way if isinstance(self.way, str) else self.way.kind


@dataclass(frozen=True)
class Group:
    """GROUP BY with its window and when its results are emitted."""

    keys: tuple[str, ...]
    window: Window | None
    emit: Literal["final", "updates", "changes"]
    place: Fragment


@dataclass(frozen=True)
class Explode:
    """``LATERAL VIEW explode(array) AS name``, or the call of a table function in its place.

    Args:
        array: the expression.
        name: of the column.
        function: name of the table function; None: explode.
    """

    array: Fragment
    name: str
    function: Fragment | None = None


@dataclass(frozen=True)
class Select:
    """``SELECT items FROM ...``."""

    items: tuple[Item, ...]
    left: Ref
    join: Join | None = None
    explode: Explode | None = None
    where: Fragment | None = None
    group: Group | None = None
    having: Fragment | None = None

    @property
    def uses(self) -> tuple[Fragment, ...]:
        """The views that it reads."""
        if self.join is None or self.join.way == "lookup":
            return (self.left.view,)
        return (self.left.view, self.join.right.view)

    @property
    def blocks(self) -> tuple[str, ...]:
        """The stateful blocks that it uses."""
        joined = JOIN_BLOCKS[self.join.kind] if self.join else ""
        joins = [joined] if joined and joined not in _STATELESS else []
        # Changes are those of a running aggregate, in a step of its own.
        grouped = [] if self.group is None else ["changelog"] if self.group.emit == "changes" else ["aggregate"]
        return (*joins, *grouped)

    @property
    def counts_rows(self) -> bool:
        """Whether its window is a number of rows, which pass through Python."""
        return self.group is not None and self.group.window is not None and self.group.window.kind == "rows"

    @property
    def is_route(self) -> bool:
        """Whether it passes on the rows of a view unchanged, all or those that meet a condition."""
        plain = self.join is None and self.group is None and self.explode is None
        return plain and [item.name for item in self.items] == ["*"]


@dataclass(frozen=True)
class Union:
    """``SELECT ... UNION ALL SELECT ...``."""

    parts: tuple[Select, ...]

    @property
    def of_one_view(self) -> bool:
        """Whether all parts select from the rows of one view, which then are read once."""
        plain = all(part.join is None and part.group is None and part.explode is None for part in self.parts)
        return plain and len({part.left.view.text for part in self.parts}) == 1

    @property
    def uses(self) -> tuple[Fragment, ...]:
        """The views that it reads."""
        if self.of_one_view:
            return (self.parts[0].left.view,)
        return tuple(name for part in self.parts for name in part.uses)

    @property
    def blocks(self) -> tuple[str, ...]:
        """The stateful blocks that it uses."""
        return tuple(block for part in self.parts for block in part.blocks)


@dataclass(frozen=True)
class Deduplicate:
    """``DEDUPLICATE view BY keys WITHIN '10m' [KEEP FIRST]``."""

    view: Fragment
    keys: tuple[str, ...]
    within: str
    keep: Literal["any", "first"]
    blocks: tuple[str, ...] = ("deduplicate",)

    @property
    def uses(self) -> tuple[Fragment, ...]:
        """The view that it reads."""
        return (self.view,)


@dataclass(frozen=True)
class OrderBy:
    """``expression [ASC | DESC]``."""

    expression: Fragment
    order: Literal["asc", "desc"]


@dataclass(frozen=True)
class Top:
    """``TOP n OF view [PER keys] ORDER BY expression [ASC | DESC], ... [IN window] [WITH [DENSE] TIES] [EMIT UPDATES]``."""

    n: int
    view: Fragment
    keys: tuple[str, ...]
    by: tuple[OrderBy, ...]
    window: Window | None
    ties: Literal["rank", "dense_rank"] | None
    emit: Literal["final", "updates"]
    blocks: tuple[str, ...] = ("top",)

    @property
    def uses(self) -> tuple[Fragment, ...]:
        """The view that it reads."""
        return (self.view,)


@dataclass(frozen=True)
class MatchStep:
    """``name [TIMES n] [NEXT] WHEN condition``."""

    name: str
    times: int
    next: bool
    when: Fragment


@dataclass(frozen=True)
class Match:
    """``MATCH view BY keys WITHIN '10m' STEPS (step, ...) [UNLESS condition]``."""

    view: Fragment
    keys: tuple[str, ...]
    within: str
    steps: tuple[MatchStep, ...]
    unless: Fragment | None
    blocks: tuple[str, ...] = ("pattern",)

    @property
    def uses(self) -> tuple[Fragment, ...]:
        """The view that it reads."""
        return (self.view,)


@dataclass(frozen=True)
class Divert:
    """``DIVERT view TO tag WHEN condition BECAUSE expression``."""

    view: Fragment
    tag: str
    when: Fragment
    reason: Fragment
    blocks: tuple[str, ...] = ()

    @property
    def uses(self) -> tuple[Fragment, ...]:
        """The view that it reads."""
        return (self.view,)


@dataclass(frozen=True)
class Call:
    """``CALL function OF view KEY expression``."""

    function: Fragment
    view: Fragment
    key: Fragment
    blocks: tuple[str, ...] = ()

    @property
    def uses(self) -> tuple[Fragment, ...]:
        """The view that it reads."""
        return (self.view,)


@dataclass(frozen=True)
class Keys:
    """``view BY key, ...``."""

    view: Fragment
    keys: tuple[str, ...]


@dataclass(frozen=True)
class Process:
    """``PROCESS view BY keys [AND view BY keys] WITH function [ON time TIME] [IN ORDER OF TIME] [TTL 'time'] [EMIT UPDATES]``.

    Args:
        inputs: one, or two with common keys.
        function: name of a keyed function.
        time: what its timers and its time to live are based on; None: as the block decides.
        ordered: whether rows are processed in the order of event time.
        ttl: time to live of its state; None: the spec's.
        updates: whether a row replaces the previous one with its key.
    """

    inputs: tuple[Keys, ...]
    function: Fragment
    time: Literal["event", "processing"] | None
    ordered: bool
    ttl: str | None
    updates: bool

    @property
    def uses(self) -> tuple[Fragment, ...]:
        """The views that it reads."""
        return tuple(one.view for one in self.inputs)

    @property
    def blocks(self) -> tuple[str, ...]:
        """The stateful block that it uses."""
        return ("process" if len(self.inputs) == 1 else "connect",)


Query = Select | Union | Deduplicate | Top | Match | Divert | Call | Process
FunctionKind = Literal["scalar", "table", "aggregate", "table aggregate", "call", "keyed"]


@dataclass(frozen=True)
class CreateFunction:
    """``CREATE kind FUNCTION name RETURNS ... AS 'module.name'``.

    Args:
        name: in this text.
        kind: how it is called.
        python: module and name of the function or class.
        returns: type of its values, or fields of its rows; None: it says so itself.
        rows: whether `returns` are fields.
        deterministic: whether the same arguments always give the same value.
        state: fields with what a keyed function keeps.
        options: of calls: ``capacity``, ``timeout``, ``attempts``, ``backoff``, ``ordered``, and ``connection``, of the spec.
    """

    name: Fragment
    kind: FunctionKind
    python: Fragment
    returns: Fragment | None = None
    rows: bool = False
    deterministic: bool = True
    state: Fragment | None = None
    options: tuple[tuple[str, str | int | bool], ...] = ()


@dataclass(frozen=True)
class CreateSource:
    """``CREATE SOURCE name (schema) [RECORD AS field]``."""

    name: Fragment
    schema: Fragment
    record: str | None


@dataclass(frozen=True)
class CreateView:
    """``CREATE VIEW name AS query``."""

    name: Fragment
    query: Query


@dataclass(frozen=True)
class Insert:
    """``INSERT INTO sink query``."""

    sink: Fragment
    query: Query


@dataclass(frozen=True)
class Result:
    """The query whose rows ``job.sql`` returns."""

    query: Query


@dataclass(frozen=True)
class SideOutput:
    """``SIDE OUTPUT sink [FOR tag]``."""

    sink: Fragment
    tag: str


Statement = CreateFunction | CreateSource | CreateView | Insert | Result | SideOutput
