"""Runs SQL in PyFlink's local cluster until it is ended, by the Python of PyFlink:
``run_sql.py FILE.sql JARS SLOTS CHECKPOINTS BACKEND``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyflink.common import Configuration  # type: ignore[import-not-found]
from pyflink.table import EnvironmentSettings, TableEnvironment  # type: ignore[import-not-found]


def main(sql: str, jars: str, slots: str, checkpoints: str, backend: str) -> None:
    """Runs the statements of a file; the last one writes."""
    conf = Configuration()
    for key, value in {
        "parallelism.default": slots,
        "taskmanager.numberOfTaskSlots": slots,
        "pipeline.jars": ";".join(f"file://{jar}" for jar in sorted(Path(jars).glob("*.jar"))),
        "pipeline.object-reuse": "true",
        "table.local-time-zone": "UTC",
        "table.exec.state.ttl": "1 d",
        "execution.checkpointing.interval": "10 s",
        "execution.checkpointing.dir": f"file://{checkpoints}",
        "execution.checkpointing.incremental": "true",
        "state.backend.type": backend,
        "rest.port": "0",
        "rest.bind-address": "127.0.0.1",
        "taskmanager.memory.network.max": "128 mb",
    }.items():
        conf.set_string(key, value)
    environment = TableEnvironment.create(EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(conf).build())
    *before, last = (statement for statement in Path(sql).read_text(encoding="utf-8").split(";\n") if statement.strip())
    for statement in before:
        environment.execute_sql(statement)
    environment.execute_sql(last).wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
