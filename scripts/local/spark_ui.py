"""What the REST API of a driver's UI reports.

Source: Spark 4.3.0's documentation, "Monitoring and Instrumentation", REST API.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.request import ProxyHandler, build_opener

_ANSWER_S = 30
# The driver's own entry in the list of executors.
_DRIVER = "driver"


def executors(ui: str) -> list[str]:
    """The executors that are registered with a driver.

    Args:
        ui: URL of the driver's UI.

    Returns:
        Their ids, in Spark's order.
    """
    application = _answer(f"{ui}/api/v1/applications")[0]["id"]
    listed = _answer(f"{ui}/api/v1/applications/{application}/executors")
    return [one["id"] for one in listed if one["id"] != _DRIVER and one["isActive"]]


def _answer(url: str) -> list[dict[str, Any]]:
    # The UI is on the loopback, whatever proxy the environment names.
    with build_opener(ProxyHandler({})).open(url, timeout=_ANSWER_S) as response:
        answer: list[dict[str, Any]] = json.load(response)
    return answer
