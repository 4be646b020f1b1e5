"""Where the set-up has put things, and what is said where it has not run."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.scripts import layout
from penstock.scripts.errors import NotSetUp


def test_jars_are_found_in_the_order_of_their_names(tmp_path: Path) -> None:
    for jar in ("spark/b.jar", "spark/a.jar", "kafka/d.jar", "kafka/c.jar", "kafka/notes.txt"):
        path = tmp_path / ".penstock" / "jars" / jar
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    jars = tmp_path / ".penstock" / "jars"
    assert layout.spark_jars(tmp_path) == [jars / "spark" / "a.jar", jars / "spark" / "b.jar"]
    assert layout.kafka_classpath(tmp_path) == f"{jars}/kafka/c.jar{os.pathsep}{jars}/kafka/d.jar"


@pytest.mark.parametrize("find", [layout.spark_jars, layout.kafka_classpath, layout.cdktf])
def test_what_is_not_there_is_an_error_that_names_the_set_up(tmp_path: Path, find: Callable[[Path], object]) -> None:
    with pytest.raises(NotSetUp) as raised:
        find(tmp_path)
    assert raised.value.exit_code == 4
    assert raised.value.fix == "./scripts/setup"
    assert raised.value.path.startswith(str(tmp_path))
