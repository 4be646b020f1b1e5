"""What Spark's own files say of the state of a query, read without Spark: the operators, their stores, columns and versions.

    state/<operator>/_metadata/metadata                   v1: operator and stores
    state/<operator>/_metadata/v2/<micro-batch>           v2: also which schema a store has
    state/<operator>/_stateSchema/<store>/<file>          schemas of v2's operators
    state/<operator>/<partition>/                         of the only store, or of each a folder with its name
        _metadata/schema                                  schema of v1's operators, of partition 0
        <version>_<id>.changelog, .zip; <version>.delta, .snapshot

Source: Spark 4.3.0, org.apache.spark.sql.execution.streaming.operators.stateful: OperatorStateMetadata, StateStoreColumnFamilySchema's
SchemaHelper, RocksDBFileManager, HDFSBackedStateStoreProvider.
"""

from __future__ import annotations

import json
import re
import struct
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

DEFAULT_STORE = "default"
_VERSION = re.compile(r"state/(\d+)/(\d+)/(?:([^/_][^/]*)/)?(\d+)(?:_[0-9a-f-]+)?\.(?:changelog|zip|delta|snapshot)")


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, alias_generator=to_camel, validate_by_name=True)


class _OperatorInfo(_Frozen):
    operator_id: int
    operator_name: str


class StoreInfo(_Frozen):
    """A store of an operator.

    Args:
        store_name: ``default``, unless the operator has several.
        num_partitions: of its state.
        state_schema_file_paths: URIs of its schemas, the last one in force; only of v2.
    """

    store_name: str
    num_partitions: int
    state_schema_file_paths: tuple[str, ...] = ()


class OperatorMetadata(_Frozen):
    """An operator, as its metadata has it."""

    operator_info: _OperatorInfo
    state_store_info: tuple[StoreInfo, ...]

    @classmethod
    def of(cls, text: str) -> OperatorMetadata:
        """From a metadata file.

        Raises:
            ValueError: it is none.
        """
        version, _, document = text.partition("\n")
        if version not in ("v1", "v2"):
            raise ValueError(f"begins with {version[:20]!r} instead of v1 or v2")
        return cls.model_validate_json(document)


class StateSchema(_Frozen):
    """The columns of a store, or of one of the column families within it.

    Args:
        name: of the column family; empty if the store has no names.
        key: columns of the key, as in DDL.
        value: columns of the value.
    """

    name: str
    key: str
    value: str


def metadata_file(names: Iterable[str], operator: int, batch: int) -> str | None:
    """The metadata that an operator had in a micro-batch; None if there is none.

    Args:
        names: of the checkpoint's files.
        operator: its id.
        batch: the micro-batch.
    """
    folder, first = f"state/{operator}/_metadata/", None
    newest = -1
    for name in names:
        if name == f"{folder}metadata":
            first = name
        elif (match := re.fullmatch(rf"{folder}v2/(\d+)", name)) and newest < int(match[1]) <= max(batch, 0):
            newest = int(match[1])
    return f"{folder}v2/{newest}" if newest >= 0 else first


def schema_file(operator: int, store: StoreInfo) -> str:
    """The name of the file with a store's schema. A copied checkpoint has it elsewhere than its metadata say."""
    if store.state_schema_file_paths:
        return f"state/{operator}/_stateSchema/{store.store_name}/{store.state_schema_file_paths[-1].rpartition('/')[2]}"
    folder = "" if store.store_name == DEFAULT_STORE else f"{store.store_name}/"
    return f"state/{operator}/0/{folder}_metadata/schema"


def operators(names: Iterable[str]) -> list[int]:
    """Ids of the operators that have files, ascending."""
    return sorted({int(match[1]) for name in names if (match := re.match(r"state/(\d+)/", name))})


def versions(names: Iterable[str]) -> dict[tuple[int, str], dict[int, set[int]]]:
    """Operator and store -> partition -> the versions that it has. A micro-batch N leaves version N + 1."""
    found: dict[tuple[int, str], dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for name in names:
        if match := _VERSION.fullmatch(name):
            operator, partition, store, version = match.groups()
            found[int(operator), store or DEFAULT_STORE][int(partition)].add(int(version))
    return found


def schemas(content: bytes) -> list[StateSchema]:
    """The schemas in a schema file.

    Raises:
        ValueError: it is none, or of an unknown version.
    """
    data = _Data(content)
    try:
        version = data.text()
        if version == "v2":
            return [StateSchema(name="", key=_columns(data.chunks()), value=_columns(data.chunks()))]
        if version == "v3":
            return [_column_family(data) for _ in range(data.number("i"))]
    except (struct.error, KeyError, TypeError, AttributeError) as error:
        raise ValueError("is incomplete") from error
    raise ValueError(f"begins with {version[:20]!r} instead of v2 or v3")


def in_one_task(schemas: Iterable[StateSchema]) -> bool:
    """Whether one task has all rows of a store: their key has no columns."""
    return not any(schema.key for schema in schemas)


def _column_family(data: _Data) -> StateSchema:
    name = data.text()
    # Each schema has a number of its own.
    data.number("h")
    key = _columns(data.chunks())
    data.number("h")
    value = _columns(data.chunks())
    # How keys are encoded, and the user's own schema of the key.
    data.chunks()
    data.chunks()
    return StateSchema(name=name, key=key, value=value)


class _Data:
    """What java.io.DataOutputStream writes."""

    def __init__(self, content: bytes) -> None:
        self._content, self._at = content, 0

    def number(self, kind: str) -> int:
        size = struct.calcsize(f">{kind}")
        (value,) = struct.unpack_from(f">{kind}", self._content, self._at)
        self._at += size
        return int(value)

    def text(self) -> str:
        length = self.number("H")
        text = self._content[self._at : self._at + length]
        if len(text) < length:
            raise ValueError("is incomplete")
        self._at += length
        return text.decode("utf-8", "replace")

    def chunks(self) -> str:
        """A text that may be too long for one."""
        return "".join(self.text() for _ in range(self.number("i")))


def _columns(schema: str) -> str:
    return ", ".join(f"{field['name']} {_type(field['type'])}" for field in json.loads(schema)["fields"])


def _type(kind: Any) -> str:
    if isinstance(kind, str):
        return {"long": "BIGINT", "integer": "INT", "short": "SMALLINT", "byte": "TINYINT"}.get(kind, kind.upper())
    if kind["type"] == "struct":
        fields = [f"{field['name']}: {_type(field['type'])}" for field in kind["fields"]]
        return f"STRUCT<{', '.join(fields)}>"
    if kind["type"] == "array":
        return f"ARRAY<{_type(kind['elementType'])}>"
    if kind["type"] == "map":
        return f"MAP<{_type(kind['keyType'])}, {_type(kind['valueType'])}>"
    return str(kind["type"]).upper()
