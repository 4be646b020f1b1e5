"""What a block or Spark rejects, reported with its place in the text."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from penstock.jobs.errors import BadDeclaration
from penstock.jobs.sql.tokens import Fragment, Script
from penstock.jobs.stream.streams import Stream

Built = TypeVar("Built")


class Tried:
    """Builds parts of a text.

    Args:
        script: the text.
    """

    def __init__(self, script: Script) -> None:
        self.script = script

    def tried(self, place: Fragment, build: Callable[[], Built]) -> Built:
        """The result of a block; what it rejects is reported with its line and column."""
        try:
            return build()
        except BadDeclaration as error:
            raise self.script.refused(place, error.need, error.fix) from None
        except ValueError as error:
            raise self.script.refused(place, str(error).split(" SQLSTATE")[0], "correct the statement") from None
        except PySparkException as error:
            raise self.script.refused(place, *_spark_says(error)) from None

    def checked(self, stream: Stream, *expressions: Fragment) -> None:
        """Checks that Spark can analyse expressions over a stream's rows, one by one. Raises SPEC-045 for the first that it cannot."""
        for expression in expressions:
            self.tried(expression, partial(_analyzed, stream, expression.text))

    def filtered(self, stream: Stream, condition: Fragment) -> Stream:
        """The rows that satisfy a condition. Raises SPEC-045 for one that Spark rejects."""
        self.checked(stream, condition)
        return self.tried(condition, lambda: stream.filter(condition.text))


def _analyzed(stream: Stream, text: str) -> None:
    # In a WHERE, where Spark allows no aggregate; in a SELECT it would treat one as a global aggregate.
    _ = stream.frame.where(F.expr(text).isNotNull()).schema


def _spark_says(error: PySparkException) -> tuple[str, str]:
    """Spark's objection to an expression, without the plan that it prints; and the fix."""
    if error.getCondition() == "INVALID_WHERE_CONDITION":
        several = (error.getMessageParameters() or {}).get("expressionList", "this")
        return f"an expression on a single row; {several} takes several", "name it in a SELECT with GROUP BY, and use that name"
    text = error.getMessage() or str(error)
    return " ".join(text.split("SQLSTATE")[0].split()).rstrip("; ") or type(error).__name__, "correct the expression"
