"""Penstock: sizes, provisions, runs and verifies PySpark Structured Streaming jobs on AWS, from one job spec.

What an app and its tests need is imported from here::

    from penstock import Job, Side, Tag, interval_join, tumbling

docs/api.md lists the names. Each is loaded when it is first used, so that ``import penstock`` and ``penstock size`` load no Spark. The list
is open until 0.1.0: names may still change.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.jobs.blocks.calls import CallRefused as CallRefused
    from penstock.jobs.blocks.calls import call as call
    from penstock.jobs.blocks.changes import changelog as changelog
    from penstock.jobs.blocks.joins import (
        Group as Group,
    )
    from penstock.jobs.blocks.joins import (
        Side as Side,
    )
    from penstock.jobs.blocks.joins import (
        broadcast_join as broadcast_join,
    )
    from penstock.jobs.blocks.joins import (
        co_group as co_group,
    )
    from penstock.jobs.blocks.joins import (
        csv_file as csv_file,
    )
    from penstock.jobs.blocks.joins import (
        interval_join as interval_join,
    )
    from penstock.jobs.blocks.joins import (
        json_lines_file as json_lines_file,
    )
    from penstock.jobs.blocks.joins import (
        lookup_join as lookup_join,
    )
    from penstock.jobs.blocks.joins import (
        regular_join as regular_join,
    )
    from penstock.jobs.blocks.joins import (
        table_join as table_join,
    )
    from penstock.jobs.blocks.joins import (
        temporal_join as temporal_join,
    )
    from penstock.jobs.blocks.joins import (
        union as union,
    )
    from penstock.jobs.blocks.joins import (
        window_join as window_join,
    )
    from penstock.jobs.blocks.keyed import (
        ConnectedFunction as ConnectedFunction,
    )
    from penstock.jobs.blocks.keyed import (
        Key as Key,
    )
    from penstock.jobs.blocks.keyed import (
        Keyed as Keyed,
    )
    from penstock.jobs.blocks.keyed import (
        KeyedFunction as KeyedFunction,
    )
    from penstock.jobs.blocks.keyed import (
        Out as Out,
    )
    from penstock.jobs.blocks.keyed import (
        State as State,
    )
    from penstock.jobs.blocks.keyed import (
        Step as Step,
    )
    from penstock.jobs.blocks.keyed import (
        connect as connect,
    )
    from penstock.jobs.blocks.keyed import (
        deduplicate as deduplicate,
    )
    from penstock.jobs.blocks.keyed import (
        list_of as list_of,
    )
    from penstock.jobs.blocks.keyed import (
        map_of as map_of,
    )
    from penstock.jobs.blocks.keyed import (
        pattern as pattern,
    )
    from penstock.jobs.blocks.keyed import (
        process as process,
    )
    from penstock.jobs.blocks.keyed import (
        value as value,
    )
    from penstock.jobs.blocks.windows import (
        TimeWindow as TimeWindow,
    )
    from penstock.jobs.blocks.windows import (
        WindowRows as WindowRows,
    )
    from penstock.jobs.blocks.windows import (
        aggregate as aggregate,
    )
    from penstock.jobs.blocks.windows import (
        count_window as count_window,
    )
    from penstock.jobs.blocks.windows import (
        cumulative as cumulative,
    )
    from penstock.jobs.blocks.windows import (
        global_window as global_window,
    )
    from penstock.jobs.blocks.windows import (
        process_window as process_window,
    )
    from penstock.jobs.blocks.windows import (
        salted as salted,
    )
    from penstock.jobs.blocks.windows import (
        same_window as same_window,
    )
    from penstock.jobs.blocks.windows import (
        session as session,
    )
    from penstock.jobs.blocks.windows import (
        sliding as sliding,
    )
    from penstock.jobs.blocks.windows import (
        top as top,
    )
    from penstock.jobs.blocks.windows import (
        tumbling as tumbling,
    )
    from penstock.jobs.blocks.windows.aggregation import Emit as Emit
    from penstock.jobs.job import Job as Job
    from penstock.jobs.local.recording import Expectation as Expectation
    from penstock.jobs.local.recording import Record as Record
    from penstock.jobs.local.recording import Recording as Recording
    from penstock.jobs.sinks.sink import Batch as Batch
    from penstock.jobs.stream.skew import observe_keys as observe_keys
    from penstock.jobs.stream.streams import DELETED as DELETED
    from penstock.jobs.stream.streams import Stream as Stream
    from penstock.jobs.stream.streams import Tag as Tag

# Name -> the module that has it.
_HOMES = {
    "Batch": "penstock.jobs.sinks.sink",
    "CallRefused": "penstock.jobs.blocks.calls",
    "ConnectedFunction": "penstock.jobs.blocks.keyed",
    "DELETED": "penstock.jobs.stream.streams",
    "Emit": "penstock.jobs.blocks.windows.aggregation",
    "Expectation": "penstock.jobs.local.recording",
    "Group": "penstock.jobs.blocks.joins",
    "Job": "penstock.jobs.job",
    "Key": "penstock.jobs.blocks.keyed",
    "Keyed": "penstock.jobs.blocks.keyed",
    "KeyedFunction": "penstock.jobs.blocks.keyed",
    "Out": "penstock.jobs.blocks.keyed",
    "Record": "penstock.jobs.local.recording",
    "Recording": "penstock.jobs.local.recording",
    "Side": "penstock.jobs.blocks.joins",
    "State": "penstock.jobs.blocks.keyed",
    "Step": "penstock.jobs.blocks.keyed",
    "Stream": "penstock.jobs.stream.streams",
    "Tag": "penstock.jobs.stream.streams",
    "TimeWindow": "penstock.jobs.blocks.windows",
    "WindowRows": "penstock.jobs.blocks.windows",
    "aggregate": "penstock.jobs.blocks.windows",
    "broadcast_join": "penstock.jobs.blocks.joins",
    "call": "penstock.jobs.blocks.calls",
    "changelog": "penstock.jobs.blocks.changes",
    "co_group": "penstock.jobs.blocks.joins",
    "connect": "penstock.jobs.blocks.keyed",
    "count_window": "penstock.jobs.blocks.windows",
    "csv_file": "penstock.jobs.blocks.joins",
    "cumulative": "penstock.jobs.blocks.windows",
    "deduplicate": "penstock.jobs.blocks.keyed",
    "global_window": "penstock.jobs.blocks.windows",
    "interval_join": "penstock.jobs.blocks.joins",
    "json_lines_file": "penstock.jobs.blocks.joins",
    "list_of": "penstock.jobs.blocks.keyed",
    "lookup_join": "penstock.jobs.blocks.joins",
    "map_of": "penstock.jobs.blocks.keyed",
    "observe_keys": "penstock.jobs.stream.skew",
    "pattern": "penstock.jobs.blocks.keyed",
    "process": "penstock.jobs.blocks.keyed",
    "process_window": "penstock.jobs.blocks.windows",
    "regular_join": "penstock.jobs.blocks.joins",
    "salted": "penstock.jobs.blocks.windows",
    "same_window": "penstock.jobs.blocks.windows",
    "session": "penstock.jobs.blocks.windows",
    "sliding": "penstock.jobs.blocks.windows",
    "table_join": "penstock.jobs.blocks.joins",
    "temporal_join": "penstock.jobs.blocks.joins",
    "top": "penstock.jobs.blocks.windows",
    "tumbling": "penstock.jobs.blocks.windows",
    "union": "penstock.jobs.blocks.joins",
    "value": "penstock.jobs.blocks.keyed",
    "window_join": "penstock.jobs.blocks.joins",
}

__all__ = [
    "DELETED",
    "Batch",
    "CallRefused",
    "ConnectedFunction",
    "Emit",
    "Expectation",
    "Group",
    "Job",
    "Key",
    "Keyed",
    "KeyedFunction",
    "Out",
    "Record",
    "Recording",
    "Side",
    "State",
    "Step",
    "Stream",
    "Tag",
    "TimeWindow",
    "WindowRows",
    "aggregate",
    "broadcast_join",
    "call",
    "changelog",
    "co_group",
    "connect",
    "count_window",
    "csv_file",
    "cumulative",
    "deduplicate",
    "global_window",
    "interval_join",
    "json_lines_file",
    "list_of",
    "lookup_join",
    "map_of",
    "observe_keys",
    "pattern",
    "process",
    "process_window",
    "regular_join",
    "salted",
    "same_window",
    "session",
    "sliding",
    "table_join",
    "temporal_join",
    "top",
    "tumbling",
    "union",
    "value",
    "window_join",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # Kept, so that the next use costs nothing.
    globals()[name] = attribute = getattr(importlib.import_module(_HOMES[name]), name)
    return attribute


def home_of(name: str) -> str:
    """The module that has a name of the public API.

    Raises:
        KeyError: no such name.
    """
    return _HOMES[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
