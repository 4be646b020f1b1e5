"""The settings in sparkConf that affect pods, as Spark parses them."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sizing.spark_settings import read_settings, spark_mib, spark_size_mib
from penstock.sizing.units import NotAQuantity


@pytest.mark.parametrize(
    ("text", "mib"),
    [
        ("2048", 2048),
        ("16g", 16384),
        (" 2G ", 2048),
        ("2GB", 2048),
        ("2gib", 2048),
        ("1900000k", 1855),
        ("2147483648b", 2048),
        ("0", 0),
        ("1023k", 0),
    ],
)
def test_a_memory_string_is_floored_to_mib(text: str, mib: int) -> None:
    assert spark_mib(text) == mib


@pytest.mark.parametrize("bad", ["1.5g", "-4g", "2 g", "", "g", "2x", "2bb", "2ib", "9" * 5000, "2000t", "+1g"])
def test_what_spark_refuses_as_memory_is_rejected(bad: str) -> None:
    with pytest.raises(NotAQuantity):
        spark_mib(bad)


def test_a_bare_off_heap_size_is_bytes() -> None:
    assert spark_size_mib("2147483648") == 2048


def test_off_heap_counts_only_where_it_is_enabled() -> None:
    size = {"spark.memory.offHeap.size": "2g"}
    assert read_settings(size)[0].off_heap_mib == 0
    assert read_settings({**size, "spark.memory.offHeap.enabled": "TRUE"})[0].off_heap_mib == 2048


def test_off_heap_without_a_size_is_rejected_as_spark_refuses_it() -> None:
    _, faults = read_settings({"spark.memory.offHeap.enabled": "true"})
    assert list(faults) == ["spark.memory.offHeap.enabled"]
    _, faults = read_settings({"spark.memory.offHeap.enabled": "true", "spark.memory.offHeap.size": "1k"})
    assert list(faults) == ["spark.memory.offHeap.size"]


@pytest.mark.parametrize(
    ("key", "bad"),
    [
        ("spark.executor.cores", "0"),
        ("spark.executor.cores", "two"),
        ("spark.executor.memoryOverheadFactor", "0"),
        ("spark.executor.memoryOverheadFactor", "-1"),
        ("spark.executor.memoryOverheadFactor", "nan"),
        ("spark.executor.memoryOverheadFactor", "1_0"),
        ("spark.task.cpus", "0"),
        ("spark.task.cpus", "0.0000000015"),
        ("spark.task.cpus", "4e-300"),
        ("spark.memory.offHeap.enabled", "yes"),
        ("spark.submit.deployMode", "Client"),
        ("spark.kubernetes.executor.request.cores", "four"),
        ("spark.driver.memory", "1.5g"),
    ],
)
def test_what_spark_refuses_is_named_with_its_key(key: str, bad: str) -> None:
    _, faults = read_settings({key: bad})
    assert list(faults) == [key]


def test_a_task_may_take_a_fraction_of_a_core() -> None:
    assert read_settings({"spark.task.cpus": "0.5"})[0].task_cpus == Decimal("0.5")


@given(
    conf=st.dictionaries(
        st.sampled_from(["spark.executor.memory", "spark.task.cpus", "spark.executor.memoryOverheadFactor", "spark.x"]), st.text()
    )
)
def test_any_text_is_read_or_refused(conf: dict[str, str]) -> None:
    _, faults = read_settings(conf)
    assert set(faults) <= set(conf) - {"spark.x"}
