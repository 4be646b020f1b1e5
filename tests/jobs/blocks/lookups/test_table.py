"""Types of a table's columns, and the query that looks up many keys."""

from __future__ import annotations

import pytest

from penstock.jobs.blocks.lookups.table import LookupTable, column_type
from penstock.jobs.spec import Table


@pytest.mark.parametrize(
    ("kind", "modifier", "spark", "read_as"),
    [
        ("int4", -1, "int", None),
        ("int8", -1, "bigint", None),
        ("text", -1, "string", "text"),
        ("uuid", -1, "string", "text"),
        ("jsonb", -1, "string", "text"),
        ("bytea", -1, "binary", None),
        ("timestamptz", -1, "timestamp", None),
        ("timestamp", 3, "timestamp_ntz", None),
        ("numeric", -1, "decimal(38,18)", "numeric(38,18)"),
        ("numeric", (10 << 16 | 2) + 4, "decimal(10,2)", "numeric(10,2)"),
        # numeric(2, -3) and numeric(3, 5), which Spark does not have, and one that is wider than Spark's.
        ("numeric", (2 << 16 | 2045) + 4, "decimal(38,18)", "numeric(38,18)"),
        ("numeric", (3 << 16 | 5) + 4, "decimal(38,18)", "numeric(38,18)"),
        ("numeric", (100 << 16 | 2) + 4, "decimal(38,18)", "numeric(38,18)"),
    ],
)
def test_a_type_of_the_database_is_one_of_sparks(kind: str, modifier: int, spark: str, read_as: str | None) -> None:
    result = column_type(kind, modifier, kind)
    assert (result.spark.simpleString(), result.read_as, result.own) == (spark, read_as, kind)


def test_many_keys_are_asked_for_at_once_by_their_columns() -> None:
    spec = {"postgres": {"connection": "bank", "table": "bank.rates", "key": ["currency", "day"], "columns": ["rate"]}}
    key = (("currency", column_type("varchar", 7, "character varying")), ("day", column_type("date", -1, "date")))
    table = LookupTable(
        "rates", Table.model_validate(spec), "postgresql://secret", key, (('o"dd%', column_type("numeric", -1, "numeric")),)
    )
    assert table.query() == (
        'SELECT q.n, t."o""dd%%"::numeric(38,18) FROM unnest(%s::character varying[], %s::date[]) WITH ORDINALITY AS q(k0, k1, n)'
        ' JOIN "bank"."rates" AS t ON t."currency" = q.k0 AND t."day" = q.k1'
    )
    assert "secret" not in repr(table)
