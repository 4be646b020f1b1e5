"""Windows: rows of a key grouped by event time, by count, or by a trigger."""

from penstock.jobs.blocks.windows.aggregation import aggregate
from penstock.jobs.blocks.windows.kinds import TimeWindow, count_window, cumulative, global_window, same_window, session, sliding, tumbling
from penstock.jobs.blocks.windows.process_window import WindowRows, process_window
from penstock.jobs.blocks.windows.splitting import salted
from penstock.jobs.blocks.windows.top import top

__all__ = [
    "TimeWindow",
    "WindowRows",
    "aggregate",
    "count_window",
    "cumulative",
    "global_window",
    "process_window",
    "salted",
    "same_window",
    "session",
    "sliding",
    "top",
    "tumbling",
]
