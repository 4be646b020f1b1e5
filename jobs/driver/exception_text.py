"""What an exception of an app says, in one line, and how to correct it if its message tells."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterable

from pyspark.errors import PySparkException

from penstock.jobs.stream.task_errors import first_line

# Source: Spark 4.3.0, error-conditions.json: UNRESOLVED_COLUMN, UNRESOLVED_FIELD and UNRESOLVED_ROUTINE.
_WANTED = re.compile(r"with name (?P<name>(?:`[^`]+`\.?)+)")
_SUGGESTED = re.compile(r"Did you mean one of the following\? \[(?P<names>[^\]]+)\]")
_STATE = re.compile(r"\s*SQLSTATE: \w+.*", re.DOTALL)
# Source: CPython, Python/ceval.c, import_from.
_IMPORTED = re.compile(r"cannot import name '(?P<name>[^']+)' from '(?P<module>[^']+)'")


def said(error: BaseException) -> str:
    """The exception's class and message."""
    return f"{type(error).__name__}: {message_of(error) if isinstance(error, PySparkException) else first_line(error)}"


def message_of(error: PySparkException) -> str:
    """Spark's message without the plan, the SQL state and the query's context."""
    text = _STATE.sub("", (error.getMessage() or str(error)).split(";\n")[0])
    return " ".join(text.split()).rstrip(";. ")


def remedy(error: BaseException) -> str:
    """The name that was meant, or the module that is missing; empty if the exception tells neither."""
    if isinstance(error, PySparkException):
        return _of_spark(error)
    match error:
        case ModuleNotFoundError(name=str(name)):
            return f"install {name}, or add its folder with --app-path"
        case ImportError() if (imported := _IMPORTED.search(str(error))) is not None:
            return _meant(imported["name"], dir(sys.modules.get(imported["module"])))
        case AttributeError(name=str(name), obj=owner):
            return _meant(name, [known for known in dir(owner) if not known.startswith("_")])
        case NameError(name=str(name)):
            return f"import or define {name}"
        case _:
            return ""


def _of_spark(error: PySparkException) -> str:
    text = error.getMessage() or str(error)
    suggested = _SUGGESTED.search(text)
    if suggested is None:
        return ""
    names = [name.strip().replace("`", "") for name in suggested["names"].split(",")]
    wanted = _WANTED.search(text)
    meant = _meant(wanted["name"].replace("`", ""), names) if wanted is not None else ""
    return meant or f"use one of {', '.join(names)}"


def _meant(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {close[0]}?" if close else ""
