"""A lookup table of a database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from penstock.jobs.blocks.lookups.errors import LookupTableDoesNotFit
from penstock.jobs.blocks.lookups.queries import Database
from penstock.jobs.spec import Table

# PostgreSQL type -> Spark type; all others are read as text.
_TYPES: dict[str, DataType] = {
    "bool": BooleanType(),
    "int2": ShortType(),
    "int4": IntegerType(),
    "int8": LongType(),
    "float4": FloatType(),
    "float8": DoubleType(),
    "date": DateType(),
    "timestamp": TimestampNTZType(),
    "timestamptz": TimestampType(),
    "bytea": BinaryType(),
}
# Used for a numeric without limits, or with wider ones than Spark's.
_WIDEST = DecimalType(38, 18)
# Without the limits of a type: a key cast to character varying(3) would be truncated, and match.
_COLUMNS = """
    SELECT a.attname, t.typname, a.atttypmod, format_type(a.atttypid, -1)
    FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
    WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped
"""


@dataclass(frozen=True)
class ColumnType:
    """A column's type: Spark's, the expression to select it, and the database's own name of it."""

    spark: DataType
    read_as: str | None
    own: str


@dataclass(frozen=True)
class LookupTable:
    """A table with everything needed for lookups.

    Args:
        name: in the spec.
        table: as in the spec.
        url: of its database, credentials included.
        key: key columns with their types.
        columns: the columns to read, with their types.
    """

    name: str
    table: Table
    url: str = field(repr=False)
    key: tuple[tuple[str, ColumnType], ...]
    columns: tuple[tuple[str, ColumnType], ...]

    @property
    def schema(self) -> StructType:
        """The schema of a looked-up row."""
        return StructType([StructField(name, kind.spark, True) for name, kind in self.columns])

    def query(self) -> str:
        """A query for many keys at once: an array per key column in, the key's number and the row out."""
        keys = [f"k{number}" for number in range(len(self.key))]
        arrays = ", ".join(f"%s::{kind.own}[]" for _, kind in self.key)
        same = " AND ".join(f"t.{_quoted(name)} = q.{key}" for key, (name, _) in zip(keys, self.key, strict=True))
        read = ", ".join(f"t.{_quoted(name)}" + (f"::{kind.read_as}" if kind.read_as else "") for name, kind in self.columns)
        asked = f"unnest({arrays}) WITH ORDINALITY AS q({', '.join(keys)}, n)"
        return f"SELECT q.n, {read} FROM {asked} JOIN {_relation(self.table)} AS t ON {same}"


# From a table's name in the spec, the table and the URL of its database.
OpenTable = Callable[[str, Table, str], LookupTable]


def open_table(name: str, table: Table, url: str) -> LookupTable:
    """Reads a table's types from its database.

    Args:
        name: in the spec.
        table: as in the spec.
        url: of the database.

    Raises:
        LookupTableDoesNotFit: JOB-071.
        DatabaseUnreachable: JOB-053.
    """
    with Database(url, f"spec.tables.{name}") as database:
        rows = database.rows(_COLUMNS, (_relation(table),))
    types = {str(column): column_type(str(kind), int(modifier), str(own)) for column, kind, modifier, own in rows}
    path = f"spec.tables.{name}.postgres"
    if not types:
        raise LookupTableDoesNotFit(
            path=f"{path}.table", given=table.postgres.table, need="an existing table that the job may read", fix="correct the name"
        )
    missing = [column for column in (*table.postgres.key, *table.postgres.columns) if column not in types]
    if missing:
        need = f"columns of {table.postgres.table}: {', '.join(types)}"
        raise LookupTableDoesNotFit(path=path, given=", ".join(dict.fromkeys(missing)), need=need, fix="correct the names")
    return LookupTable(name, table, url, _typed(table.postgres.key, types), _typed(table.postgres.columns, types))


def untyped_table(name: str, table: Table, url: str) -> LookupTable:
    """The table, where its database can't be asked for its types: keys of text, columns of Spark's VOID, which fits any type.

    Args:
        name: in the spec.
        table: as in the spec.
        url: of the database.
    """
    key, columns = ColumnType(StringType(), "text", "text"), ColumnType(NullType(), None, "text")
    return LookupTable(
        name, table, url, tuple((one, key) for one in table.postgres.key), tuple((one, columns) for one in table.postgres.columns)
    )


def column_type(kind: str, modifier: int, own: str) -> ColumnType:
    """A column's type.

    Args:
        kind: PostgreSQL's name of it.
        modifier: its precision and scale, as in the catalog; -1: none.
        own: as written in SQL without precision and length, ``character varying``.
    """
    if kind in _TYPES:
        return ColumnType(_TYPES[kind], None, own)
    if kind != "numeric":
        return ColumnType(StringType(), "text", own)
    # PostgreSQL 18, src/backend/utils/adt/numeric.c, make_numeric_typmod: precision above 16 bits, scale in 11 bits with a sign.
    precision, scale = (modifier - 4) >> 16 & 0xFFFF, ((modifier - 4 & 0x7FF) ^ 1024) - 1024
    fits = modifier >= 4 and precision <= _WIDEST.precision and 0 <= scale <= precision
    decimal = DecimalType(precision, scale) if fits else _WIDEST
    return ColumnType(decimal, f"numeric({decimal.precision},{decimal.scale})", own)


def _typed(names: Sequence[str], types: dict[str, ColumnType]) -> tuple[tuple[str, ColumnType], ...]:
    return tuple((name, types[name]) for name in names)


def _relation(table: Table) -> str:
    return ".".join(_quoted(part) for part in table.postgres.table.split("."))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""').replace("%", "%%") + '"'
