"""The settings that no Spark session can change, as Spark says, as JSON: ``python -m tests.sizing.plan.session.static_keys``.

A separate process: once a session has been started, PySpark changes how errors of any JVM in the same process are read.
"""

from __future__ import annotations

import json

from penstock.scripts.dev import spark_keys

if __name__ == "__main__":
    print(json.dumps(spark_keys.static()))
