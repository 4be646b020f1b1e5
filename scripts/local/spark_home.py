"""Where PySpark is installed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path


def spark_home() -> Path:
    """The folder of the package, which is a Spark distribution too. Found without the import, which takes half a second."""
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent
