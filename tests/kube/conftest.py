"""One API server for all the tests of the tier."""

from __future__ import annotations

import pytest

from penstock.scripts.kube import binaries
from tests.kube.fixtures import api, chart_kube, chart_objects, charts, crds, helm, kube, objects, released, s3, tell

__all__ = ["api", "chart_kube", "chart_objects", "charts", "crds", "helm", "kube", "objects", "released", "s3", "tell"]

# The first run builds etcd, the API server and helm, which takes some minutes.
_FIRST_RUN_LIMIT_S = binaries.FETCH_LIMIT_S + binaries.BUILD_LIMIT_S


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if {"kube", "chart_kube", "helm"} & set(getattr(item, "fixturenames", ())) and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(_FIRST_RUN_LIMIT_S))
