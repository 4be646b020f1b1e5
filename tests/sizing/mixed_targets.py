"""Targets with any combination of settings that affect pods, for properties that must hold for all of them."""

from __future__ import annotations

from hypothesis import strategies as st

from penstock.sizing.executor_spread import ExecutorSpread
from penstock.sizing.targets import DriverTarget, ExecutorTarget, Parallelism, Targets


def _mib(least: int, most: int) -> st.SearchStrategy[str]:
    return st.integers(least, most).map(lambda mib: f"{mib}m")


_FACTOR = st.floats(0.01, 3).map(lambda factor: f"{factor:.3f}")
_MODE = {"spark.submit.deployMode": st.sampled_from(["client", "cluster"])}
_ANY_OF = {
    "spark.executor.minMemoryOverhead": _mib(0, 2048),
    "spark.executor.memoryOverhead": _mib(0, 2048),
    "spark.executor.memoryOverheadFactor": _FACTOR,
    "spark.driver.minMemoryOverhead": _mib(0, 2048),
    "spark.driver.memoryOverhead": _mib(0, 2048),
    "spark.driver.memoryOverheadFactor": _FACTOR,
    "spark.kubernetes.memoryOverheadFactor": _FACTOR,
    "spark.task.cpus": st.sampled_from(["0.5", "1", "1.5", "2"]),
}
_OFF_HEAP = st.fixed_dictionaries({"spark.memory.offHeap.enabled": st.just("true"), "spark.memory.offHeap.size": _mib(1, 4096)})
_SPREADING = st.sampled_from([None, "preferred", "required"])
PYTHON_MEMORY = "spark.executor.pyspark.memory"


@st.composite
def mixed_targets(draw: st.DrawFn, *, python_memory: bool = False) -> Targets:
    """Targets of any pods; with `python_memory` also the setting for which the two modes create different pods."""
    conf = draw(st.fixed_dictionaries(_MODE, optional={**_ANY_OF, **({PYTHON_MEMORY: _mib(0, 4096)} if python_memory else {})}))
    conf |= draw(_OFF_HEAP) if draw(st.booleans()) else {}
    kinds = st.sampled_from(["memory_mib", "heap_mib"])
    memory = st.integers(1, 200_000)
    executor = ExecutorTarget.model_validate(
        {
            "slots": draw(st.integers(2, 64)),
            "cpu_millicores": draw(st.integers(1, 64_000)),
            draw(kinds): draw(memory),
            "spread": draw(st.none() | st.builds(ExecutorSpread, nodes=_SPREADING, zones=_SPREADING)),
        }
    )
    return Targets(
        parallelism=Parallelism(value=draw(st.integers(1, 5000))),
        executor=executor,
        driver=DriverTarget(**{draw(kinds): draw(memory)}),
        spark_conf=conf,
    )
