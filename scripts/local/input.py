"""The local input and the expectation of a spec: resolved, imported and converted to records."""

from __future__ import annotations

import importlib
import inspect
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from penstock.jobs.driver.root_cause import OwnCode, RootCause, of_exception
from penstock.jobs.local.recording import Expectation, Record, Recording
from penstock.jobs.spec import SpecFile
from penstock.scripts.errors import ExpectationFailed, InputFailed

Generator = Callable[[int], Iterable[Record]]
Expect = Callable[[Recording], Expectation]


def generators(spec: SpecFile, app_path: Iterable[Path]) -> dict[str, Generator]:
    """Topic -> generator of its records, given the number of partitions.

    Raises:
        PenstockError: RUN-013 with the spec's line.
    """
    return {topic: _generator(spec, topic, reference, app_path) for topic, reference in spec.job.spec.local.input.items()}


def expectation(spec: SpecFile, app_path: Iterable[Path]) -> Expect | None:
    """The function that computes the expected output; None if the spec has none.

    Raises:
        PenstockError: RUN-017 with the spec's line.
    """
    reference = spec.job.spec.local.expect
    if reference is None:
        return None
    try:
        return _named(reference, app_path)  # type: ignore[no-any-return]
    except Exception as error:
        fault = ExpectationFailed(need=f"an importable function; {_cause(error, app_path)}", fix="correct the reference or the module")
        raise spec.document.locate(fault, ("spec", "local", "expect")) from None


def _generator(spec: SpecFile, topic: str, reference: str, app_path: Iterable[Path]) -> Generator:
    try:
        if reference.endswith(".jsonl"):
            file = spec.path.parent / reference
            file.open("rb").close()
            return lambda partitions: _lines(file)
        function = _named(reference, app_path)
    except Exception as error:
        need = f"an importable function, or a .jsonl file next to the spec; {_cause(error, app_path)}"
        fault = InputFailed(need=need, fix="correct the reference, the module or the file")
        raise spec.document.locate(fault, ("spec", "local", "input", topic)) from None
    takes_partitions = bool(inspect.signature(function).parameters)
    return lambda partitions: _records(topic, function, (partitions,) if takes_partitions else ())


def _cause(error: Exception, app_path: Iterable[Path]) -> RootCause:
    """What has been raised by the import, and where in the team's code."""
    return of_exception(error, OwnCode(tuple(folder.resolve() for folder in app_path)))


def _named(reference: str, app_path: Iterable[Path]) -> Any:
    module, _, name = reference.partition(":")
    for folder in app_path:
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
    function = getattr(importlib.import_module(module), name)
    if not callable(function):
        raise TypeError(f"{reference} is a {type(function).__name__}")
    return function


def _lines(file: Path) -> Iterator[Record]:
    """One record per line, verbatim."""
    with file.open("rb") as lines:
        for line in lines:
            if line.strip():
                yield Record(line.rstrip(b"\r\n"))


def _records(topic: str, function: Callable[..., Iterable[object]], arguments: tuple[int, ...]) -> Iterator[Record]:
    """The function's result. It is called when the first record is requested, so that all its exceptions are raised in one place."""
    for item in function(*arguments):
        yield _record(topic, item)


def _record(topic: str, item: object) -> Record:
    """What a generator may yield: a `Record`, or only its value as bytes, as text or as a JSON-serialisable object."""
    if isinstance(item, Record):
        return item
    if isinstance(item, bytes):
        return Record(item)
    if isinstance(item, str):
        return Record(item.encode())
    try:
        return Record(json.dumps(item).encode())
    except (TypeError, ValueError) as error:
        need = "a penstock.jobs.local.recording.Record, bytes, a string or a JSON-serializable mapping"
        raise InputFailed(path=f"generator of {topic}", given=repr(item)[:200], need=need, fix=str(error)) from None
