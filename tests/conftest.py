"""Tiers of tests: each test has one, by its marker or its folder, and none may be left out where all must run.

The tier executors runs tests of the tier spark once more, on a cluster: those with the marker `on_executors`, or all of them.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Generator
from functools import cache
from pathlib import Path

import pytest

from penstock.scripts.dev.tiers import DURATIONS, EITHER, ON_EXECUTORS, TIERS

_TESTS = Path(__file__).resolve().parent
_LONG = "chaos"
_DURATIONS = _TESTS.parent / DURATIONS


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds options of the tiers executors and chaos."""
    parser.addoption("--all-of-spark", action="store_true", help="with -m executors: run every test of the tier spark on the executors")
    parser.addoption("--full", action="store_true", help="with -m chaos: 100 kills of executors for each exactly-once sink, not 20 in all")
    parser.addoption("--chaos-seed", type=int, default=1, help="with -m chaos: what is killed at random, and when (1)")


def pytest_configure(config: pytest.Config) -> None:
    """Makes the tiers known as markers. Verbs check no apps first, which would start Spark: `check` itself has tests of its own."""
    os.environ.setdefault("PENSTOCK_CHECK", "off")
    config.addinivalue_line("markers", f"{ON_EXECUTORS}: a test of the tier spark that the tier executors runs too")
    for tier, what in TIERS.items():
        config.addinivalue_line("markers", f"{tier}: {what}")


def _asked(config: pytest.Config) -> tuple[str, ...]:
    """The tiers that are asked for; none if the expression of ``-m`` is another one than of tiers."""
    asked = tuple(str(config.getoption("markexpr")).split(EITHER))
    return asked if set(asked) <= TIERS.keys() else ()


def _folder_tier(path: Path) -> str | None:
    """The tier whose folder a file or folder lies in; of several the innermost."""
    parts = path.relative_to(_TESTS).parts if path.is_relative_to(_TESTS) else ()
    return next((part for part in reversed(parts) if part in TIERS), None)


def _tier(item: pytest.Item) -> str:
    """A test's tier: its marker or the folder that it lies in, else fast; executors for those of spark that are asked to run there."""
    own = _own_tier(item)
    if own == "spark" and item.config.getoption("markexpr") == "executors":
        chosen = item.config.getoption("--all-of-spark") or item.get_closest_marker(ON_EXECUTORS)
        return "executors" if chosen else own
    return own


def _own_tier(item: pytest.Item) -> str:
    """The tier that a test has by its marker or its folder."""
    marked = {mark.name for mark in item.iter_markers() if mark.name in TIERS}
    folder = _folder_tier(item.path)
    # What takes long may stand beside the shorter tests of its subject.
    named = {*marked, folder} if folder and marked != {_LONG} else marked
    if len(named) > 1:
        raise pytest.UsageError(f"{item.nodeid} is in several tiers: {', '.join(sorted(named))}; a test has one")
    # A run of that tier would not read the file.
    for tier in marked:
        if not _names_marker(item.path, tier):
            raise pytest.UsageError(f"{item.nodeid} is in tier {tier}, and its file does not name pytest.mark.{tier}")
    return named.pop() if named else "fast"


@cache
def _names_marker(file: Path, tier: str) -> bool:
    return f"mark.{tier}" in file.read_text(encoding="utf-8")


@cache
def _leads_to(folder: Path, tiers: tuple[str, ...]) -> bool:
    """Whether a folder of one tier has one of another tier below it, or a file with tests that are marked so."""
    files = folder.rglob("test_*.py") if folder.is_dir() else [folder]
    return any(tier in file.relative_to(_TESTS).parts or _names_marker(file, tier) for file in files for tier in tiers)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves the folders and files of other tiers unread: what they import takes long, and may be missing here."""
    asked, folder = _asked(config), _folder_tier(collection_path)
    if not asked:
        return None
    read = ("spark", "executors") if asked == ("executors",) else asked
    if folder:
        return None if folder in read or _leads_to(collection_path, read) else True
    # Outside of the folders all tests are fast but those with a marker.
    is_test = collection_path.match("test_*.py")
    return True if is_test and "fast" not in asked and not any(_names_marker(collection_path, tier) for tier in read) else None


# First, since pytest's own hook of this name drops what `-m` doesn't ask for.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Gives every test the marker of its tier; of the tier that is asked for first, those of the files that take longest come first."""
    tiers = {item: _tier(item) for item in items}
    for item, tier in tiers.items():
        item.add_marker(tier)
    asked = _asked(items[0].config) if items else ()
    if asked:
        known = _known_seconds(",".join(asked))
        places = {item: asked.index(tier) if tier in asked else len(asked) for item, tier in tiers.items()}
        items.sort(key=lambda item: (places[item], -known.get(item.path, 0)))


def _known_seconds(tiers: str) -> dict[Path, int]:
    """File of tests -> seconds that it took when it was recorded."""
    known = json.loads(_DURATIONS.read_text(encoding="utf-8")) if _DURATIONS.exists() else {}
    return {_TESTS.parent / file: seconds for file, seconds in known.get(tiers, {}).items()}


def pytest_keyboard_interrupt() -> None:
    """Lets a worker clean up in peace: some seconds after Ctrl-C it is asked once more, which would cut its cleaning up short."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _must_run(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Makes a skip a failure where all must run; an expected failure counts as skipped to pytest and stays one."""
    if os.environ.get("PENSTOCK_REQUIRE_ALL") == "1" and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.outcome = "failed"
        report.longrepr = f"PENSTOCK_REQUIRE_ALL=1: this must run, but it was skipped. {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Holds a test to running where all must run."""
    report = yield
    _must_run(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Holds a file of tests to running where all must run."""
    report = yield
    _must_run(report)
    return report
