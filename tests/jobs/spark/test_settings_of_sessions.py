"""The settings of a session's job, in a Spark that runs already."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from penstock.jobs.driver.errors import SettingOfSession
from penstock.jobs.session.shared_spark import apply_settings

STATIC = "spark.sql.warehouse.dir"


def test_a_job_has_its_own_and_what_spark_has_once_must_be_the_same(session: SparkSession) -> None:
    one, other = session.newSession(), session.newSession()
    apply_settings(one, "clicks", {"spark.sql.shuffle.partitions": "7", STATIC: str(one.conf.get(STATIC))})
    apply_settings(other, "views", {"spark.sql.shuffle.partitions": "9"})
    assert [each.conf.get("spark.sql.shuffle.partitions") for each in (one, other)] == ["7", "9"]

    with pytest.raises(SettingOfSession) as raised:
        apply_settings(one, "clicks", {"spark.executor.memory": "9g", STATIC: "elsewhere", "spark.sql.shuffle.partitions": "8"})
    assert (raised.value.code, raised.value.path) == ("JOB-113", "job clicks")
    given = str(raised.value.given)
    assert "spark.executor.memory: 9g (session: " in given and f"{STATIC}: elsewhere (session: " in given
    assert "shuffle.partitions" not in given
