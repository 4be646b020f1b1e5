"""The Spark settings of targets, parsed once for the whole plan."""

from __future__ import annotations

from penstock.sizing.errors import BadSparkSetting, PenstockError
from penstock.sizing.spark_settings import SparkSettings, read_settings
from penstock.sizing.targets import Targets


def settings_of(targets: Targets) -> tuple[SparkSettings, list[PenstockError]]:
    """The settings of targets, and SIZ-002 for each one that Spark would reject."""
    settings, faults = read_settings(targets.spark_conf)
    errors: list[PenstockError] = []
    for key, fault in faults.items():
        given = targets.spark_conf.get(key, "")
        errors.append(targets.locate(BadSparkSetting(given=given, need=fault.need, fix=fault.fix), f"spark_conf.{key}"))
    return settings, errors
