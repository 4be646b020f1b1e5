"""What each query of a job reads, and what it writes and counts of what several of them read.

The places at which rows are counted, or leave the stream, are operators with a number (`penstock.jobs.stream.leaving.Operator`). Several
queries of a job may contain the same one: that of a source, or of a step that comes before the outputs part. Its rows are written to
side outputs, and counted, by the first of these queries alone, in the order of ``job.write``. The others take them out of their stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from penstock.jobs.driver.structure import Structure
from penstock.jobs.job import Output
from penstock.jobs.stream.analyzed_plan import functions_of
from penstock.jobs.stream.leaving import operator_of, takes_rows


@dataclass(frozen=True)
class Share:
    """The share of one query.

    Args:
        query: name of the query within the job, that of its first sink; empty for the first query.
        sources: names of the sources that it reads.
        others: numbers of its operators whose rows an earlier query writes and counts.
        counted: names of the sources that it counts.
        leaving: whether rows may leave at an operator whose rows it writes.
    """

    query: str
    sources: tuple[str, ...]
    others: frozenset[int] = frozenset()
    counted: frozenset[str] = frozenset()
    leaving: bool = True


def names(outputs: Sequence[Output]) -> list[str]:
    """The names of a job's queries within the job: empty for the first, that of their first sink for the others."""
    return ["", *(next(iter(output.routes)) for output in outputs[1:])]


def shares(outputs: Sequence[Output], queries: Sequence[Structure], counters: Mapping[str, str]) -> list[Share]:
    """The shares of a job's queries, in the order of its outputs.

    Args:
        outputs: of the job; each is a query.
        queries: the same as Spark has analyzed them.
        counters: of `penstock.jobs.driver.structure.counters_of`.
    """
    if len(outputs) == 1:
        sources = tuple(dict.fromkeys(counters.values()))
        return [Share("", sources, counted=frozenset(sources))]
    taken: set[int] = set()
    found: list[Share] = []
    for name, query in zip(names(outputs), queries, strict=True):
        functions = functions_of(query.frame)
        numbers = _numbers(functions)
        others = numbers & taken
        found.append(
            Share(
                query=name,
                sources=tuple(counters[counter] for counter in query.reads),
                others=frozenset(others),
                counted=frozenset(counters[counter] for counter in query.reads if operator_of(counter) not in others),
                leaving=bool(_numbers(filter(takes_rows, functions)) - others),
            )
        )
        taken |= numbers
    return found


def _numbers(functions: Iterable[str]) -> set[int]:
    return {number for function in functions if (number := operator_of(function)) is not None}
