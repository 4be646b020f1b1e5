"""The test kit: pytest fixtures for a team's jobs, which pytest finds where the package is installed.

``micro_batches`` feeds small hand-made micro-batches to an app and gives the rows of its sinks, ``assert_plan`` holds the plan of a spec
against numbers, ``local_environment`` has the services of a local run, and ``aws_stacks`` the applied stacks of an environment. Names for
the tests themselves are imported from here::

    from penstock.testing import Record, replayed, same_rows
"""

from __future__ import annotations

if __name__ != "penstock.testing":
    raise ImportError(f"{__name__} is part of Penstock and cannot be imported on its own; import penstock.testing instead")

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.testing.applied_stacks import AppliedStacks as AppliedStacks
    from penstock.testing.applied_stacks import AwsStacks as AwsStacks
    from penstock.testing.differences import same_rows as same_rows
    from penstock.testing.job_under_test import JobUnderTest as JobUnderTest
    from penstock.testing.local_services import LocalServices as LocalServices
    from penstock.testing.output import MicroBatch as MicroBatch
    from penstock.testing.output import Output as Output
    from penstock.testing.plans import AssertPlan as AssertPlan
    from penstock.testing.plugin import MicroBatches as MicroBatches
    from penstock.testing.records import Record as Record
    from penstock.testing.records import Replayed as Replayed
    from penstock.testing.records import replayed as replayed

# Name -> its module: pytest loads the plugin in every run, and Spark is imported only by the tests that need it.
_MODULES = {
    "AppliedStacks": "applied_stacks",
    "AssertPlan": "plans",
    "AwsStacks": "applied_stacks",
    "JobUnderTest": "job_under_test",
    "LocalServices": "local_services",
    "MicroBatch": "output",
    "MicroBatches": "plugin",
    "Output": "output",
    "Record": "records",
    "Replayed": "records",
    "replayed": "records",
    "same_rows": "differences",
}
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
