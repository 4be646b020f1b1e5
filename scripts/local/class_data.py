"""The archives of classes for local JVMs: that of Spark's drivers and executors, and that of the Kafka broker.

Measured on 2 cores: the driver of a small query uses 13 s of CPU time instead of 22, a broker until it answers 2.8 s instead of 5.2. Each
environment has its own of Spark's, of some 200 MB, and making it takes a minute; the broker's has 50 MB and takes seconds. The tests make
them, and ``python -m penstock.scripts.local.class_data``; local runs use what is there.
"""

from __future__ import annotations

import os
from importlib.metadata import version
from pathlib import Path

from penstock.scripts import layout
from penstock.scripts.installation.cache import Cache
from penstock.scripts.local.class_archive import ClassArchive
from penstock.scripts.local.spark_home import spark_home
from penstock.scripts.progress import Steps

_TRAINING = "penstock.scripts.local.class_data_training"
_KAFKA_TRAINING = "penstock.scripts.local.kafka_class_data_training"


def options(cache: Cache | None = None) -> str:
    """Options of Spark's JVMs that use their archive, as Spark's settings take them; empty if there is none.

    Args:
        cache: the cache; the user's by default.
    """
    return " ".join(f'"{option}"' if "File=" in option else option for option in spark(cache).options())


def make(steps: Steps, cache: Cache | None = None) -> bool:
    """Makes Spark's archive; see `ClassArchive.make`.

    Args:
        steps: shows progress.
        cache: the cache; the user's by default.

    Raises:
        PenstockError: TOOL-015, TOOL-016, TOOL-020, the cache cannot be used or has no jars.
    """
    return spark(cache).make(steps)


def spark(cache: Cache | None = None) -> ClassArchive:
    """Spark's archive.

    Args:
        cache: the cache; the user's by default.

    Raises:
        PenstockError: TOOL-016, TOOL-020, the cache cannot be used or has no jars.
    """
    used = cache or Cache.of_user()
    more, home = tuple(layout.spark_jars(used)), spark_home()
    jars = (*more, *sorted((home / "jars").glob("*.jar")))
    return ClassArchive(used, "Spark", more, jars, (str(home), version("pyspark")), _TRAINING)


def kafka(cache: Cache | None = None) -> ClassArchive:
    """The Kafka broker's archive, which its storage tool maps too.

    Args:
        cache: the cache; the user's by default.

    Raises:
        PenstockError: TOOL-016, TOOL-020, the cache cannot be used or has no jars.
    """
    used = cache or Cache.of_user()
    jars = tuple(map(Path, layout.kafka_classpath(used).split(os.pathsep)))
    return ClassArchive(used, "Kafka", jars, jars, (), _KAFKA_TRAINING)


if __name__ == "__main__":
    make(Steps())
    kafka().make(Steps())
