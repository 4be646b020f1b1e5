"""Joins of two streams, and unions.

=================  =====================================================================================================================
block              which rows match
=================  =====================================================================================================================
`interval_join`    rows with the same key whose event times are close
`window_join`      rows with the same key in the same window; `co_group` passes them to a function
`temporal_join`    each row and the version of its key that was valid at its event time
`regular_join`     all rows with the same key, whenever they arrive; the result changes as they do
`broadcast_join`   each row and the rows of a small table, by key or by a condition
`table_join`       each row and the rows of a file that every micro-batch reads again
`lookup_join`      each row and the current row of a database table for its key
`union`            none: several streams with the same fields become one
=================  =====================================================================================================================
"""

from penstock.jobs.blocks.joins.broadcast import broadcast_join
from penstock.jobs.blocks.joins.interval import interval_join, offset_ms
from penstock.jobs.blocks.joins.lookup import lookup_join
from penstock.jobs.blocks.joins.regular import regular_join
from penstock.jobs.blocks.joins.sides import Side
from penstock.jobs.blocks.joins.tables import csv_file, json_lines_file, table_join
from penstock.jobs.blocks.joins.temporal import temporal_join
from penstock.jobs.blocks.joins.unions import union
from penstock.jobs.blocks.joins.windowed import Group, co_group, window_join

__all__ = [
    "Group",
    "Side",
    "broadcast_join",
    "co_group",
    "csv_file",
    "interval_join",
    "json_lines_file",
    "lookup_join",
    "offset_ms",
    "regular_join",
    "table_join",
    "temporal_join",
    "union",
    "window_join",
]
