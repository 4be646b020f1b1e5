"""The streams of the views of a text in SQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from penstock.jobs.blocks.joins import Side, broadcast_join, interval_join, lookup_join, regular_join, temporal_join, union, window_join
from penstock.jobs.blocks.keyed import Step, deduplicate, pattern
from penstock.jobs.blocks.lookups.table import LookupTable
from penstock.jobs.blocks.windows import TimeWindow, count_window, cumulative, global_window, same_window, session, sliding, top, tumbling
from penstock.jobs.blocks.windows.kinds import Global
from penstock.jobs.sql.statements import (
    Call,
    Deduplicate,
    Divert,
    Explode,
    Group,
    InWindow,
    Join,
    Match,
    Process,
    Query,
    Ref,
    Regular,
    Select,
    Top,
    Union,
    Window,
    Within,
)
from penstock.jobs.sql.tokens import Fragment, Script
from penstock.jobs.sql_views.functions import Functions
from penstock.jobs.sql_views.grouping import grouped
from penstock.jobs.sql_views.tried import Tried
from penstock.jobs.stream.columns import as_column
from penstock.jobs.stream.streams import Stream


class Views(Tried):
    """The streams by their names.

    Args:
        script: the text.
        streams: name of a source or a view -> stream.
        table: returns a table of the spec.
        functions: returns the functions of the text, of what reports its errors.
    """

    def __init__(
        self,
        script: Script,
        streams: Mapping[str, Stream],
        table: Callable[[str], LookupTable],
        functions: Callable[[Tried], Functions],
    ) -> None:
        super().__init__(script)
        self.functions = functions(self)
        self.streams = dict(streams)
        self._table = table

    def built(self, query: Query) -> Stream:
        """The stream of a query. Raises SPEC-045 with the line."""
        match query:
            case Select():
                return self._select(query)
            case Union():
                return self._of_one_view(query) if query.of_one_view else self._union(query, [self._select(part) for part in query.parts])
            case Deduplicate():
                stream = self._stream(query.view)
                return self.tried(query.view, lambda: deduplicate(stream, query.keys, within=query.within, keep=query.keep))
            case Top():
                return self._top(query)
            case Match():
                return self._match(query)
            case Divert():
                stream = self._stream(query.view)
                self.checked(stream, query.when, query.reason)
                return self.tried(query.when, lambda: stream.divert(query.tag, query.when.text, query.reason.text))
            case Call() | Process():
                return self.functions.rows(query, [self._stream(view) for view in query.uses])

    def _stream(self, view: Fragment) -> Stream:
        if view.text not in self.streams:
            raise self.script.refused(view, f"one of {', '.join(self.streams)}", "correct the name")
        return self.streams[view.text]

    def _select(self, query: Select) -> Stream:
        stream = self._from(query)
        if query.explode:
            stream = self._exploded(stream, query.explode)
        if query.where:
            stream = self.filtered(stream, query.where)
        if query.group:
            window = self._window(query.group)
            return grouped(self, self.functions, query, query.group, window, stream)
        columns = self._selected(stream, query)
        return self.tried(query.left.view, lambda: stream.select(**columns))

    def _selected(self, stream: Stream, query: Select) -> dict[str, str | Column]:
        """Name -> expression of the columns of a SELECT."""
        columns: dict[str, str | Column] = {}
        for item in query.items:
            self._add(columns, item.expression, self._columns(stream, item.expression, item.name))
        return columns

    def _union(self, query: Union, parts: Sequence[Stream]) -> Stream:
        return self.tried(query.parts[-1].left.view, lambda: union(*parts))

    def _of_one_view(self, query: Union) -> Stream:
        """A union whose parts read one view: each of its rows once for each part, as Spark would read its topics for each part."""
        stream = self._stream(query.uses[0])
        selected = [self._selected(stream, part) for part in query.parts]
        self._union(query, [stream.select(**columns) for columns in selected])
        conditions = [part.where for part in query.parts]
        self.checked(stream, *filter(None, conditions))
        branch = "_branch"
        rows = stream.explode(branch, F.sequence(F.lit(0), F.lit(len(selected) - 1)))
        if any(conditions):
            rows = rows.filter(_of_branch(branch, [one.text if one else "true" for one in conditions]))
        return rows.select(**{name: _of_branch(branch, [columns[name] for columns in selected]) for name in selected[0]})

    def _exploded(self, stream: Stream, explode: Explode) -> Stream:
        if explode.function is not None:
            self.functions.refuse_no_table(explode.function)
        self.tried(explode.array, lambda: stream.frame.where(F.expr(explode.array.text).isNotNull()).schema)
        return self.tried(explode.array, lambda: stream.explode(explode.name, explode.array.text))

    def _window(self, group: Group) -> TimeWindow | Global:
        if group.window is not None:
            if group.emit == "changes":
                raise self.script.refused(group.window.place, "no window: EMIT CHANGES is of all rows so far", "remove one of them")
            return self._of(group.window)
        if group.emit == "final":
            if {"window_start", "window_end"} & set(group.keys):
                fix = "add the other one"
                raise self.script.refused(group.place, "both window_start and window_end, by which the window of the view is known", fix)
            need = "a window or EMIT UPDATES: without either, a group never ends and has no final result"
            raise self.script.refused(group.place, need, "use GROUP BY ..., TUMBLE('5m'), or add EMIT UPDATES")
        return global_window()

    def checked(self, stream: Stream, *expressions: Fragment) -> None:
        """See `Tried`. Raises SPEC-045 also for a function that is not called in expressions."""
        self.functions.refuse_misplaced(*expressions)
        super().checked(stream, *expressions)

    def _from(self, query: Select) -> Stream:
        left = self._stream(query.left.view)
        return left if query.join is None else self._joined(query.left, left, query.join)

    def _columns(self, stream: Stream, expression: Fragment, name: str) -> dict[str, str]:
        """Name -> expression of an item, with a star expanded."""
        if name != "*":
            self.checked(stream, expression)
            return {name: expression.text}
        if expression.text == "*":
            return {field: f"`{field}`" for field in stream.fields}
        side = expression.text.split(".")[0].strip()
        schema = stream.frame.schema[side].dataType if side in stream.fields else None
        if not isinstance(schema, StructType):
            raise self.script.refused(expression, f"a side of the join: {', '.join(stream.fields)}", "correct the name")
        return {field: f"`{side}`.`{field}`" for field in schema.names}

    def _add(self, columns: dict[str, str | Column], place: Fragment, more: Mapping[str, str]) -> None:
        twice = sorted(columns.keys() & more.keys())
        if twice:
            raise self.script.refused(place, f"unique column names; duplicate: {', '.join(twice)}", "add AS name")
        columns.update(more)

    def _of(self, window: Window) -> TimeWindow | Global:
        size, step, offset = window.size, window.step or "", window.offset
        makes: dict[str, Callable[[], TimeWindow | Global]] = {
            "tumble": lambda: tumbling(size, offset=offset),
            "hop": lambda: sliding(size, every=step, offset=offset),
            "session": lambda: session(size),
            "cumulate": lambda: cumulative(size, step=step, offset=offset),
            "same": same_window,
            "rows": lambda: count_window(int(size), every=int(step) if step else None),
        }
        return self.tried(window.place, makes[window.kind])

    def _time_window(self, window: Window) -> TimeWindow:
        kind = self._of(window)
        if isinstance(kind, Global):
            raise self.script.refused(window.place, "a time window", "use TUMBLE, HOP, SESSION or CUMULATE")
        return kind

    def _joined(self, ref: Ref, stream: Stream, join: Join) -> Stream:
        if join.way == "lookup":
            return self._looked_up(ref, stream, join)
        mine, others = ([pair[number] for pair in join.keys] for number in (0, 1))
        left = Side(ref.alias, stream, mine, ref.unique or None)
        right = Side(join.right.alias, self._stream(join.right.view), others, join.right.unique or None)
        return self.tried(join.condition, lambda: self._join(left, right, join))

    def _join(self, left: Side, right: Side, join: Join) -> Stream:
        match join.way:
            case Within(lower=lower, upper=upper, between=between):
                moments = None if between is None else (between[0].text, between[1].text)
                return interval_join(left, right, lower=lower, upper=upper, between=moments, how=join.how)
            case InWindow(window=window):
                return window_join(left, right, self._time_window(window), how=join.how)
            case Regular(emit=emit, kept=kept):
                return regular_join(left, right, how=join.how, emit=emit, ttl=kept)
        if join.how == "full":
            raise ValueError("FULL is not supported for a temporal join: use INNER or LEFT")
        if join.way == "temporal":
            return temporal_join(left, right, how=join.how)
        if not join.keys and right.unique is None:
            raise ValueError(
                f"a join on a condition requires the fields that identify a row of {right.name}: add UNIQUE (field) after its name"
            )
        # Rows identified by other fields than the join keys: several of them may match, as with any condition.
        by_key = join.keys and (not join.right.unique or set(join.right.unique) == {theirs for _, theirs in join.keys})
        return broadcast_join(left, right, on=None if by_key else join.condition.text, how=join.how)

    def _looked_up(self, ref: Ref, stream: Stream, join: Join) -> Stream:
        if join.how == "full":
            raise self.script.refused(join.right.view, "INNER or LEFT", "rows that only the table has are not emitted")
        how = join.how
        table = self.tried(join.right.view, lambda: self._table(join.right.view.text))
        on: dict[str, str] = {theirs: f"`{mine}`" for mine, theirs in join.keys}
        joined = self.tried(join.condition, lambda: lookup_join(stream, table, on, how, name=join.right.alias))
        sides: dict[str, str | Column] = {ref.alias: F.struct(*stream.fields), join.right.alias: F.col(join.right.alias)}
        return joined.select(**sides)

    def _top(self, query: Top) -> Stream:
        stream = self._stream(query.view)
        self.checked(stream, *(one.expression for one in query.by))
        window = (
            self._time_window(query.window)
            if query.window
            else global_window()
            if query.emit == "updates" and not _windowed(stream)
            else None
        )
        return self.tried(
            query.view,
            lambda: top(
                stream,
                query.n,
                by=[one.expression.text for one in query.by],
                keys=query.keys,
                window=window,
                order=[one.order for one in query.by],
                ties=query.ties,
                emit=query.emit,
            ),
        )

    def _match(self, query: Match) -> Stream:
        stream = self._stream(query.view)
        self.checked(stream, *(step.when for step in query.steps), *([query.unless] if query.unless else []))
        steps = [Step(step.name, step.when.text, step.times, step.next) for step in query.steps]
        unless = query.unless.text if query.unless else None
        return self.tried(query.view, lambda: pattern(stream, query.keys, steps, within=query.within, unless=unless))


def _windowed(stream: Stream) -> bool:
    return {"window_start", "window_end"} <= set(stream.fields)


def _of_branch(branch: str, expressions: Sequence[str | Column]) -> Column:
    """Of several expressions the one whose number a column has."""
    first, *others = [as_column(expression) for expression in expressions]
    column = F.when(F.col(branch) == 0, first)
    for number, other in enumerate(others, start=1):
        column = column.when(F.col(branch) == number, other)
    return column
