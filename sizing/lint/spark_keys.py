"""The settings that the pinned Spark version defines, and their valid values.

``data/spark-4.3.0-keys.txt`` is extracted from Spark's own jars (`penstock.scripts.dev.spark_keys`). This module adds what the jars
lack: names that Spark's code composes at run time, and the families of libraries that are used with Spark.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from penstock.sizing.lint.names import nearest

SPARK_VERSION = "4.3.0"
_DATA = Path(__file__).parent.parent / "data" / f"spark-{SPARK_VERSION}-keys.txt"

# Source: Spark 4.3.0, names composed at run time (TransportConf, ResourceUtils, LiveListenerBus, SSLOptions, KubernetesConf,
# parameters of a UI filter by its class).
_COMPOSED = (
    "spark.driver.resource.",
    "spark.driver.rpc.",
    "spark.executor.resource.",
    "spark.executor.rpc.",
    "spark.files.io.",
    "spark.files.sasl.",
    "spark.kubernetes.authenticate.",
    "spark.network.io.",
    "spark.rpc.netty.",
    "spark.scheduler.listenerbus.eventqueue.",
    "spark.shuffle.io.",
    "spark.shuffle.sasl.",
    "spark.task.resource.",
    "spark.com.",
    "spark.io.netty.",
    "spark.org.",
)
# Libraries with their own settings, which are not checked.
_LIBRARIES = (
    "spark.cassandra.",
    "spark.celeborn.",
    "spark.comet.",
    "spark.databricks.",
    "spark.dataflint.",
    "spark.datahub.",
    "spark.datasource.",
    "spark.delta.",
    "spark.es.",
    "spark.gluten.",
    "spark.kryo.",
    "spark.mongodb.",
    "spark.openlineage.",
    "spark.rapids.",
    "spark.redis.",
    "spark.rss.",
    "spark.snowflake.",
    "spark.sql.gluten.",
    "spark.sql.hudi.",
    "spark.sql.iceberg.",
    "spark.sql.paimon.",
    "spark.uniffle.",
)
# Case-insensitive: Source: Spark 4.3.0, RocksDBConf uses a case-insensitive map.
_ANY_CASE = "spark.sql.streaming.stateStore.rocksdb."

# Names that appear in documentation but that Spark never had, or that were replaced by another mechanism.
MISTAKEN = {
    "spark.decommission": "spark.decommission.enabled",
    "spark.executor.decommission.enabled": "spark.decommission.enabled",
    "spark.kubernetes.decommission.enabled": "spark.decommission.enabled",
    "spark.kubernetes.executor.decommission.enabled": "spark.decommission.enabled",
    "spark.worker.decommission.enabled": "spark.decommission.enabled",
    "spark.kubernetes.driver.cores": "spark.kubernetes.driver.request.cores",
    "spark.kubernetes.executor.cores": "spark.kubernetes.executor.request.cores",
    "spark.kubernetes.driver.memory": "spark.driver.memory",
    "spark.kubernetes.executor.memory": "spark.executor.memory",
    "spark.kubernetes.driver.memoryOverhead": "spark.driver.memoryOverhead",
    "spark.kubernetes.executor.memoryOverhead": "spark.executor.memoryOverhead",
    "spark.kubernetes.executor.memoryOverheadFactor": "spark.executor.memoryOverheadFactor",
    "spark.kubernetes.driver.memoryOverheadFactor": "spark.driver.memoryOverheadFactor",
    "spark.kubernetes.executor.instances": "spark.executor.instances",
    "spark.kubernetes.nodeSelector": "spark.kubernetes.node.selector.LABEL",
    "spark.kubernetes.executor.gracePeriodSeconds": "spark.kubernetes.executor.terminationGracePeriodSeconds",
    "spark.executor.core": "spark.executor.cores",
    "spark.executor.num": "spark.executor.instances",
    "spark.num.executors": "spark.executor.instances",
    "spark.shuffle.partitions": "spark.sql.shuffle.partitions",
    "spark.default.shuffle.partitions": "spark.sql.shuffle.partitions",
    "spark.sql.streaming.checkpoint.location": "spark.sql.streaming.checkpointLocation",
    "spark.sql.streaming.maxOffsetsPerTrigger": "maxOffsetsPerTrigger of the spec's source",
    "spark.sql.streaming.stateStore.rocksdb.enabled": "state.backend: rocksdb of the spec",
    "spark.kubernetes.driver.tolerations": "the tolerations of the environment, or a pod template",
    "spark.kubernetes.executor.tolerations": "the tolerations of the environment, or a pod template",
    "spark.kubernetes.tolerations": "the tolerations of the environment, or a pod template",
}

_SIZE = re.compile(r"-?[0-9]+(b|k|m|g|t|p|[kmgtp]i?b)?", re.ASCII)
_TIME = re.compile(r"-?[0-9]+(us|ms|s|m|min|h|d)?", re.ASCII)
_DOUBLE = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?[df]?|[+-]?(NaN|Infinity)", re.ASCII)
_INTEGER = re.compile(r"[+-]?[0-9]{1,20}", re.ASCII)
_BITS = {"int": 31, "long": 63}


class Setting(NamedTuple):
    """A setting as defined by Spark.

    Args:
        key: its name.
        kind: as in `penstock.scripts.dev.spark_keys`.
        note: Spark's note on a deprecated, removed or renamed setting.
    """

    key: str
    kind: str
    note: str = ""


def setting(key: str) -> Setting | None:
    """The definition of a setting, or None if it does not exist."""
    known = _settings().get(key) or _any_case().get(key.lower())
    if known is not None and known.kind != "family":
        return known
    return Setting(key, "family") if key.startswith(_families()) else None


def likely(key: str) -> str:
    """The most similar setting, or an empty text."""
    return MISTAKEN.get(key) or nearest(key, (name for name, known in _settings().items() if _is_current(known)), cutoff=0.8)


def expected(known: Setting, value: str) -> str:
    """A description of the valid values if Spark rejects this value, otherwise an empty text."""
    kind, _, options = known.kind.partition(" ")
    text = value.strip()
    if "${" in text or kind not in _KINDS:
        return ""
    if kind in ("options", "Options"):
        return _expected_option(text if kind == "options" else text.upper(), options, any_case=kind == "Options")
    return "" if _fits(kind, text) else _KINDS[kind]


_KINDS = {
    "boolean": "true or false",
    "int": "an integer",
    "long": "an integer",
    "double": "a number",
    "bytes": "a size: an integer with k, m, g or t, or without a unit",
    "time": "a duration: an integer with ms, s, m, h or d, or without a unit",
    "options": "",
    "Options": "",
}


def _expected_option(text: str, options: str, *, any_case: bool) -> str:
    known = options.split("|")
    return "" if text in ([one.upper() for one in known] if any_case else known) else f"one of {', '.join(known)}"


def _fits(kind: str, text: str) -> bool:
    if kind == "boolean":
        return text.lower() in ("true", "false")
    if kind == "bytes":
        return bool(_SIZE.fullmatch(text.lower()))
    if kind == "time":
        return bool(_TIME.fullmatch(text.lower()))
    if kind == "double":
        return bool(_DOUBLE.fullmatch(text) or _DOUBLE.fullmatch(text.lower()))
    bound = 1 << _BITS[kind]
    return bool(_INTEGER.fullmatch(text)) and -bound <= int(text) < bound


def _is_current(known: Setting) -> bool:
    return known.kind not in ("family", "removed", "renamed") and not known.note


@cache
def _settings() -> dict[str, Setting]:
    lines = (line for line in _DATA.read_text("utf-8").splitlines() if not line.startswith("#"))
    parsed = (Setting(*line.split("\t")) for line in lines)
    return {one.key: one for one in parsed}


@cache
def _any_case() -> dict[str, Setting]:
    return {key.lower(): known for key, known in _settings().items() if key.startswith(_ANY_CASE)}


@cache
def _families() -> tuple[str, ...]:
    return (*_COMPOSED, *_LIBRARIES, *(key for key, known in _settings().items() if known.kind == "family"))
