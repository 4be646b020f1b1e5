"""Checks the structure of a query before it starts: what it reads, its watermarks, and the operators that keep its state.

Blocks are checked where the app calls them. What an app does with Spark's own API is known once Spark has analyzed the query.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame

from penstock.jobs.blocks.keyed.backend import on_the_heap
from penstock.jobs.driver.errors import OperatorsDiffer
from penstock.jobs.errors import BadDeclaration
from penstock.jobs.job import Job
from penstock.jobs.spec import SpecFile
from penstock.jobs.spec.app_module import AppModule, StatefulOperator, read
from penstock.jobs.stream import analyzed_plan
from penstock.jobs.stream.event_time.engine import NEVER, NEVER_MS
from penstock.jobs.stream.streams import Stream

_WHERE = "job.write"


@dataclass(frozen=True)
class Structure:
    """A query as Spark has analyzed it.

    Args:
        frame: the query.
        operators: those that keep state.
        reads: what it reads, see `analyzed_plan.sources_of`.
    """

    frame: DataFrame
    operators: Sequence[analyzed_plan.StatefulOperator]
    reads: Sequence[str]

    @classmethod
    def of(cls, frame: DataFrame) -> Structure:
        """Of a query."""
        return cls(frame, analyzed_plan.stateful_operators(frame), analyzed_plan.sources_of(frame))


def counters_of(sources: Mapping[str, Stream]) -> dict[str, str]:
    """The function that counts a source's records -> the source.

    Args:
        sources: name -> stream of the sources that the app has taken.
    """
    return {counter: name for name, stream in sources.items() for counter in analyzed_plan.sources_of(stream.frame)}


def refuse_query(job: Job, query: Structure, counters: Mapping[str, str]) -> None:
    """Rejects a query that reads or marks what Penstock does not know of, or that this job can't have.

    Args:
        job: as its app has declared it.
        query: of the job.
        counters: of `counters_of`.

    Raises:
        BadDeclaration: JOB-004.
    """
    _refuse_reads(counters, query.reads)
    _refuse_watermarks(query.frame)
    _refuse_unsupported(job, query.frame, query.operators)


def refuse_structure(spec: SpecFile, source: Path | None, job: Job, queries: Sequence[Structure], counters: Mapping[str, str]) -> None:
    """Rejects queries that together leave a source unread, or keep other state than is declared.

    Args:
        spec: the job's.
        source: the app's file; None if it has none, as in an archive, so that nothing that it declares is known.
        job: as its app has declared it.
        queries: of the job, each accepted by `refuse_query`.
        counters: of `counters_of`.

    Raises:
        BadDeclaration: JOB-004, a source without an output.
        OperatorsDiffer: JOB-011.
    """
    read_by_any = {counters[read] for query in queries for read in query.reads}
    unread = [name for name in job.sources if name not in read_by_any]
    if unread:
        need = f"an output that is fed by each source; without rows of: {', '.join(unread)}"
        raise BadDeclaration(path=_WHERE, need=need, fix="derive the output from it, or remove it from the app and the spec")
    if source is not None:
        _refuse_undeclared(spec, read(source), [operator for query in queries for operator in query.operators])


def _refuse_reads(counters: Mapping[str, str], read: Sequence[str]) -> None:
    """A query reads the sources of the spec, each once."""
    reads = Counter(read)
    foreign = [one for one in reads if one not in counters]
    if foreign:
        need, fix = "rows of the spec's sources alone", "add the source to the spec and read it by job.source"
        raise BadDeclaration(path=_WHERE, given=foreign[0], need=need, fix=fix)
    times = Counter({counters[counter]: count for counter, count in reads.items()})
    twice = [name for name, count in times.items() if count > 1]
    if twice:
        given = f"{twice[0]}, {times[twice[0]]} times"
        need = "each source once: Spark reads it again for each branch that is joined or united"
        fix = "use one branch (explode, when(...), or a keyed function instead of a self-join), or give the spec a second source"
        raise BadDeclaration(path=_WHERE, given=given, need=need, fix=fix)


def _refuse_watermarks(frame: DataFrame) -> None:
    foreign = analyzed_plan.foreign_watermarks(frame, NEVER)
    if foreign:
        fix = "remove withWatermark, and set `time` of the source in the spec with its outOfOrderness"
        need = "the watermark of the spec alone, by which late rows are kept and counted"
        raise BadDeclaration(path=_WHERE, given=f'withWatermark("{foreign[0]}", ...)', need=need, fix=fix)


def _refuse_unsupported(job: Job, frame: DataFrame, operators: Sequence[analyzed_plan.StatefulOperator]) -> None:
    if analyzed_plan.has_distinct_aggregate(frame):
        need = "aggregates that Structured Streaming supports; those of DISTINCT values are not"
        fix = "use size(collect_set(x)) for the exact number, or approx_count_distinct(x)"
        raise BadDeclaration(path=_WHERE, given="an aggregate of DISTINCT values", need=need, fix=fix)
    if analyzed_plan.longest_deduplication_ms(frame) >= NEVER_MS:
        need = "rows whose outOfOrderness is known, to remove keys from the state"
        fix = "call it on the .df of a source, or use the block deduplicate(stream, keys, within=...)"
        raise BadDeclaration(path=_WHERE, given="dropDuplicatesWithinWatermark after a stateful block", need=need, fix=fix)
    if on_the_heap(job.session) and any(operator.arbitrary for operator in operators):
        fix = "set state.backend: rocksdb in the spec"
        raise BadDeclaration(path=_WHERE, given="transformWithState, with state on the heap", need="state in RocksDB", fix=fix)


def _refuse_undeclared(spec: SpecFile, module: AppModule, operators: Sequence[analyzed_plan.StatefulOperator]) -> None:
    """The state that sizing plans for is that of the query."""
    load = spec.job.spec.load
    of_spec = load.state.operators if load and load.state else None
    actual = Counter[StatefulOperator](operator.kind for operator in operators)
    if of_spec is not None:
        _refuse_other(actual, Counter(of_spec), operators, "spec.load.state.operators", f"operators: [{', '.join(actual.elements())}]")
    elif module.operator_kinds:
        kinds = (kind for kind in module.operator_kinds.values() if kind is not None)
        _refuse_other(actual, Counter(kinds), operators, "OPERATORS of the app", _literal(module.operator_kinds, operators))
    elif actual - Counter(module.stateful_operators):
        # An app may have blocks that it does not use with these parameters.
        _refuse_other(actual, Counter(module.stateful_operators), operators, "the blocks that the app calls", _literal({}, operators))


def _refuse_other(
    actual: Mapping[StatefulOperator, int],
    declared: Mapping[StatefulOperator, int],
    operators: Sequence[analyzed_plan.StatefulOperator],
    where: str,
    right: str,
) -> None:
    if actual != declared:
        names = ", ".join(operator.name for operator in operators) or "no stateful operators"
        need = f"the operators that keep state in the query: {_counted(actual)} ({names})"
        raise OperatorsDiffer(path=where, given=_counted(declared), need=need, fix=f"declare {right}")


def _counted(kinds: Mapping[StatefulOperator, int]) -> str:
    return ", ".join(f"{count} x {kind}" for kind, count in sorted(kinds.items()) if count) or "none"


def _literal(declared: Mapping[str, StatefulOperator | None], operators: Sequence[analyzed_plan.StatefulOperator]) -> str:
    """A literal with the right kinds: names of operators without state stay, the others are examples."""
    stateless = [f'"{name}": None' for name, kind in declared.items() if kind is None] or ['"read": None', '"write": None']
    # Named in the order in which rows pass them.
    named = [f'"{operator.name.lower()}-{number}": "{operator.kind}"' for number, operator in enumerate(reversed(operators), start=1)]
    return "OPERATORS = {" + ", ".join([*stateless[:1], *named, *stateless[1:]]) + "}"
