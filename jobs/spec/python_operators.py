"""The Python operators of an app, each with worker processes of its own: from its syntax tree, without running it."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping

from penstock.jobs.spec.app_calls import called, origins
from penstock.sizing.python_workers import PythonUse

# Block -> the Python operators of the stage of its plan that has the most: workers of earlier stages are used again. A window is one where
# a trigger decides; without, Spark aggregates in the JVM.
BLOCKS: Mapping[str, tuple[PythonUse, ...]] = {
    "process": ("keyed",),
    "connect": ("keyed",),
    "pattern": ("keyed",),
    "regular_join": ("keyed",),
    "temporal_join": ("keyed",),
    "broadcast_join": ("keyed",),
    "window_join": ("udf",),
    "co_group": ("udf",),
    "changelog": ("keyed",),
    "count_window": ("keyed",),
    "global_window": ("keyed",),
    "call": ("client",),
    "lookup_join": ("client",),
    "table_join": ("arrow",),
}
# Spark's own: method of a DataFrame, of groups or of an RDD -> its operator.
_METHODS: Mapping[str, PythonUse] = {
    "mapInArrow": "arrow",
    "applyInArrow": "arrow",
    "mapInPandas": "pandas",
    "applyInPandas": "pandas",
    "applyInPandasWithState": "pandas",
    "transformWithState": "keyed",
    "transformWithStateInPandas": "keyed",
    "foreachPartition": "client",
    "mapPartitions": "udf",
}
# Spark computes the functions of one kind of a stage in one operator, so that each kind counts once.
_FUNCTIONS: Mapping[str, PythonUse] = {"udf": "udf", "udtf": "udf", "arrow_udf": "arrow", "arrow_udtf": "arrow", "pandas_udf": "pandas"}
# Packages that every job has, for clients that its functions use; they have no functions for Spark themselves.
_CLIENTS = frozenset({"aiohttp", "boto3", "botocore", "confluent_kafka", "httpx", "psycopg", "redis"})
_READ = frozenset({"penstock", "pyspark", "numpy", "pandas", "pyarrow", *_CLIENTS, *sys.stdlib_module_names})


def of_calls(calls: tuple[str, ...]) -> tuple[PythonUse, ...]:
    """The Python operators of called blocks."""
    return tuple(use for call in calls for use in BLOCKS.get(call, ()))


def of_module(tree: ast.Module) -> tuple[PythonUse, ...]:
    """The Python operators of a module.

    Modules that it imports are not read: they may have keyed functions, the largest of the operators, so one is assumed.
    """
    found = (*_blocks(tree), *_methods(tree), *sorted(_functions(tree)))
    return (*found, "keyed") if "keyed" not in found and any(_unread(tree)) else found


def _blocks(tree: ast.Module) -> Iterator[PythonUse]:
    known = origins(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = called(node.func, known)
            yield from BLOCKS.get(name, ())
            if name == "deduplicate" and any(_keeps_the_first(keyword) for keyword in node.keywords):
                yield "keyed"


def _keeps_the_first(keyword: ast.keyword) -> bool:
    """Whether an argument may be ``keep="first"``, for which rows go through Python."""
    return keyword.arg == "keep" and not (isinstance(keyword.value, ast.Constant) and keyword.value.value == "any")


def _methods(tree: ast.Module) -> Iterator[PythonUse]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
            yield _METHODS[node.func.attr]


def _functions(tree: ast.Module) -> set[PythonUse]:
    """Also as decorators."""
    names = (node.id if isinstance(node, ast.Name) else node.attr for node in ast.walk(tree) if isinstance(node, ast.Name | ast.Attribute))
    return {_FUNCTIONS[name] for name in names if name in _FUNCTIONS}


def _unread(tree: ast.Module) -> Iterator[bool]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield node.level > 0 or (node.module or "").split(".")[0] not in _READ
        elif isinstance(node, ast.Import):
            yield any(alias.name.split(".")[0] not in _READ for alias in node.names)
