"""Reads a job's checkpoint from S3 while the job may run: offsets, commits, records, state and files of sinks.

What is damaged or missing is listed beside what can be read, by the errors that a driver would end with.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from pydantic import ValidationError

from penstock.jobs.sinks.open_parts import Chunk
from penstock.jobs.sinks.part_log import Manifest
from penstock.jobs.spec import KafkaSource, SpecFile
from penstock.jobs.storage import state_files
from penstock.jobs.storage.checkpoint import FINISHED, WHOLE, BatchRecord, Checkpoint
from penstock.jobs.storage.errors import CheckpointDamaged
from penstock.jobs.storage.generation import Generation
from penstock.jobs.storage.objects import Listed
from penstock.jobs.storage.offset_log import OffsetLog, topics
from penstock.jobs.storage.state_files import OperatorMetadata, StoreInfo
from penstock.scripts.errors import WrongUsage
from penstock.scripts.operations.checkpoint_content import (
    Amount,
    CheckpointContent,
    FileSink,
    QueryContent,
    SinkFile,
    SourceOffsets,
    SourcePartition,
    StatefulOperator,
    StateStore,
)
from penstock.scripts.render.node_shares import counted
from penstock.sizing.errors import PenstockError

_Read = TypeVar("_Read")
# Spark's parts of a checkpoint, in the order in which a micro-batch writes them.
_SPARKS = ("metadata", "sources", "offsets", "state", "commits")


def content_of(spec: SpecFile, checkpoint: Checkpoint, generation: Generation | None, micro_batch: int | None) -> CheckpointContent:
    """What a checkpoint has.

    Args:
        spec: of the job.
        checkpoint: which.
        generation: that it belongs to; None if the job has recorded none.
        micro_batch: which one to show; None: the last committed one of each query.

    Raises:
        WrongUsage: USE-001, no query has the micro-batch.
        BucketUnreachable: JOB-009.
    """
    listed, faults = checkpoint.listed(), _Faults()
    by_query = _by_query(listed)
    for name in generation.queries if generation else ():
        by_query.setdefault(name, {})
    queries = [_Query(name, checkpoint.of_query(name), own, faults) for name, own in sorted(by_query.items())]
    if micro_batch is not None and not any(query.has(micro_batch) for query in queries):
        kept = ", ".join(f"{query.first} to {query.last_planned}{f' of {query.name}' if query.name else ''}" for query in queries)
        need = f"one that {checkpoint.uri} has: {kept}"
        raise WrongUsage(given=f"--micro-batch {micro_batch}", need=need, fix="leave it out for the last")
    if listed and "penstock/identity" not in listed:
        faults.missing(checkpoint.uri, "penstock/identity", "which each checkpoint has")
    return CheckpointContent(
        job=spec.job.metadata.name,
        generation=generation.number if generation else None,
        checkpoint=checkpoint.uri,
        identity=(checkpoint.content("penstock/identity") or b"").decode(errors="replace") or None,
        finished=f"penstock/{FINISHED}" in listed,
        amount=Amount.of(listed),
        queries=tuple(query.content(spec, generation, micro_batch) for query in queries),
        errors=tuple(dict(error.as_json()) for error in faults.found),
        faults=tuple(faults.found),
    )


def _by_query(listed: Mapping[str, Listed]) -> dict[str, dict[str, Listed]]:
    """Query -> its objects, by their names in its own checkpoint."""
    found: dict[str, dict[str, Listed]] = {"": {}}
    for name, one in listed.items():
        match = re.match(r"queries/([^/]+)/", name)
        found.setdefault(match[1] if match else "", {})[name[match.end() :] if match else name] = one
    return found


class _Faults:
    """What is damaged or missing."""

    def __init__(self) -> None:
        self.found: list[PenstockError] = []

    def missing(self, path: str, name: str, why: str) -> None:
        self.found.append(CheckpointDamaged(path=path, given=f"no {name}", need=f"{name}, {why}", fix=WHOLE))


class _Query:
    """A query's part of a checkpoint.

    Args:
        name: empty for the first.
        checkpoint: its own.
        listed: its objects.
        faults: takes what is damaged or missing.
    """

    def __init__(self, name: str, checkpoint: Checkpoint, listed: Mapping[str, Listed], faults: _Faults) -> None:
        self.name = name
        self._checkpoint, self._listed, self._faults = checkpoint, listed, faults
        planned, committed = self._numbers("offsets"), self._numbers("commits")
        self.last_planned, self.last_committed = max(planned, default=-1), max(committed, default=-1)
        self.first = min([*planned, *committed], default=-1)

    def has(self, batch: int) -> bool:
        """Whether anything of a micro-batch is left."""
        return any(name in self._listed for name in (f"offsets/{batch}", f"commits/{batch}", f"penstock/batches/{batch}.json"))

    def content(self, spec: SpecFile, generation: Generation | None, micro_batch: int | None) -> QueryContent:
        """As of a micro-batch."""
        batch = self.last_committed if micro_batch is None or not self.has(micro_batch) else micro_batch
        commit = self._listed.get(f"commits/{batch}")
        if batch < 0:
            self._refuse_lost_commits()
        log, before = self._log(batch, needed=True), self._log(batch - 1, needed=False)
        return QueryContent(
            name=self.name,
            micro_batch=batch,
            at=datetime.fromtimestamp(log.batch_timestamp_ms / 1000, UTC) if log else None,
            committed=commit.written if commit else None,
            first_kept=self.first,
            last_committed=self.last_committed,
            last_planned=self.last_planned,
            sources=tuple(self._sources(spec, generation, log, before)) if log else (),
            record=self._record(batch),
            operators=tuple(self._operators(generation, batch, log, committed=commit is not None)),
            sinks=tuple(self._sinks(batch)),
            amounts=self._amounts(),
        )

    def _numbers(self, folder: str) -> list[int]:
        return [int(match[1]) for name in self._listed if (match := re.fullmatch(rf"{folder}/(\d+)", name))]

    def _refuse_lost_commits(self) -> None:
        if self.last_planned > 0:
            self._faults.missing(
                self._checkpoint.uri, f"commits/{self.last_planned - 1}", f"which comes before offsets/{self.last_planned}"
            )

    def _read(self, name: str, what: str, parsed: Callable[[bytes], _Read]) -> _Read | None:
        """An object that is listed; None if it is damaged."""
        try:
            return parsed(self._checkpoint.content(name) or b"")
        except ValueError as error:
            given = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
            self._faults.found.append(CheckpointDamaged(path=f"{self._checkpoint.uri}/{name}", given=given, need=what, fix=WHOLE))
            return None

    def _log(self, batch: int, *, needed: bool) -> OffsetLog | None:
        name = f"offsets/{batch}"
        if name in self._listed:
            return self._read(name, f"Spark's offset log of micro-batch {batch}", lambda content: OffsetLog.of(content.decode()))
        if needed and batch >= 0:
            self._faults.missing(self._checkpoint.uri, name, f"which must exist for commits/{batch}")
        return None

    def _record(self, batch: int) -> BatchRecord | None:
        name = f"penstock/batches/{batch}.json"
        if name in self._listed:
            return self._read(name, f"the record of micro-batch {batch}", BatchRecord.model_validate_json)
        if f"commits/{batch}" in self._listed:
            self._faults.missing(self._checkpoint.uri, name, f"which must exist for commits/{batch}")
        return None

    def _sources(self, spec: SpecFile, generation: Generation | None, log: OffsetLog, before: OffsetLog | None) -> Iterator[SourceOffsets]:
        query = generation.queries.get(self.name) if generation else None
        for number, offset in enumerate(log.sources):
            ends = self._topics(offset)
            starts = self._topics(before.sources[number]) if before and number < len(before.sources) else {}
            partitions = [
                SourcePartition(topic=topic, partition=int(one), start=starts.get(topic, {}).get(one), end=end)
                for topic, parts in sorted(ends.items())
                for one, end in sorted(parts.items(), key=lambda part: int(part[0]))
            ]
            names = [name for name in _readers(spec, set(ends)) if query is None or name in query.sources]
            yield SourceOffsets(names=tuple(names), partitions=tuple(partitions), offset=None if ends else offset)

    def _topics(self, offset: str | None) -> Mapping[str, Mapping[str, int]]:
        try:
            return topics(offset)
        except ValueError:
            # Of a connector of which nothing is known.
            return {}

    def _operators(
        self, generation: Generation | None, batch: int, log: OffsetLog | None, *, committed: bool
    ) -> Iterator[StatefulOperator]:
        query = generation.queries.get(self.name) if generation else None
        recorded = {operator.id for operator in query.operators} if query and committed else set()
        names = [name for name in self._listed if name.startswith("state/")]
        versions, at = state_files.versions(names), batch if committed else None
        for operator in sorted({*state_files.operators(names), *recorded}):
            file = state_files.metadata_file(names, operator, batch)
            if file is None:
                if committed:
                    self._faults.missing(self._checkpoint.uri, f"state/{operator}/_metadata", f"of stateful operator {operator}")
                continue
            metadata = self._read(
                file, f"Spark's metadata of stateful operator {operator}", lambda read: OperatorMetadata.of(read.decode())
            )
            if metadata is None:
                continue
            own = {name: self._listed[name] for name in names if name.startswith(f"state/{operator}/")}
            # Metadata of version 1 keep the number of the first micro-batch after a repartition.
            fixed = {"num_partitions": log.settings.shuffle_partitions} if log and log.settings.shuffle_partitions else {}
            yield StatefulOperator(
                id=operator,
                name=metadata.operator_info.operator_name,
                stores=tuple(
                    self._store(operator, store.model_copy(update=fixed), versions.get((operator, store.store_name), {}), at)
                    for store in metadata.state_store_info
                ),
                amount=Amount.of(own),
            )

    def _store(self, operator: int, store: StoreInfo, versions: Mapping[int, set[int]], batch: int | None) -> StateStore:
        """A store; of a committed micro-batch with a check that each partition has its version."""
        file, schemas = state_files.schema_file(operator, store), None
        if file in self._listed:
            schemas = self._read(file, f"Spark's schema of the state of operator {operator}", state_files.schemas)
        elif versions:
            self._faults.missing(self._checkpoint.uri, file, f"the schema of the state of operator {operator}")
        if schemas and state_files.in_one_task(schemas):
            store = store.model_copy(update={"num_partitions": 1})
        # What is left of others is of before a repartition.
        versions = {number: own for number, own in versions.items() if number < store.num_partitions}
        if batch is not None:
            self._refuse_lost_versions(operator, store, versions, batch)
        return StateStore(
            name=store.store_name,
            partitions=store.num_partitions,
            version=max((max(own) for own in versions.values()), default=0) if batch is None else batch + 1,
            oldest_version=max((min(own) for own in versions.values()), default=None),
            schemas=tuple(schemas or ()),
        )

    def _refuse_lost_versions(self, operator: int, store: StoreInfo, versions: Mapping[int, set[int]], batch: int) -> None:
        lacking = [number for number in range(store.num_partitions) if batch + 1 not in versions.get(number, ())]
        if lacking:
            folder = "" if store.store_name == state_files.DEFAULT_STORE else f"/{store.store_name}"
            more = f" of partition {lacking[0]}" + (f" and {counted(len(lacking) - 1, 'further one')}" if len(lacking) > 1 else "")
            uri = f"{self._checkpoint.uri}/state/{operator}/{lacking[0]}{folder}"
            self._faults.missing(uri, f"version {batch + 1}{more}", f"which micro-batch {batch} left before it was committed")

    def _sinks(self, batch: int) -> Iterator[FileSink]:
        decisions: dict[str, list[int]] = defaultdict(list)
        for name in self._listed:
            if match := re.fullmatch(r"penstock/sinks/([^/]+)/log/(\d+)\.json", name):
                decisions[match[1]].append(int(match[2]))
        for sink, numbers in sorted(decisions.items()):
            for number in sorted(numbers, reverse=True):
                manifest = self._decision(sink, number)
                if manifest is not None and manifest.batch > batch:
                    continue
                if manifest is not None:
                    yield self._sink(sink, manifest)
                break

    def _decision(self, sink: str, number: int) -> Manifest | None:
        name = f"penstock/sinks/{sink}/log/{number:010d}.json"
        return self._read(name, f"decision {number} of the sink {sink}", Manifest.model_validate_json)

    def _sink(self, name: str, manifest: Manifest) -> FileSink:
        files = tuple(SinkFile(key=part.key, rows=part.rows, bytes=part.bytes) for part in manifest.parts)
        files += tuple(_of_chunks(part.key, part.chunks) for part in manifest.composed)
        published = self._published(name, manifest.number)
        return FileSink(
            name=name,
            decision=manifest.number,
            micro_batch=manifest.batch,
            pending=() if published else files,
            published=files if published else (),
            open=tuple(_of_chunks(part.directory, part.chunks) for part in manifest.open),
        )

    def _published(self, sink: str, decision: int) -> bool:
        """Whether the files of a decision are published: it is marked, or followed by another one, which is only made then."""
        folder = f"penstock/sinks/{sink}/"
        names = [name.removeprefix(folder) for name in self._listed if name.startswith(folder)]
        return any(name > f"log/{decision:010d}.json" for name in names if name.startswith("log/")) or any(
            name >= f"published/{decision:010d}" for name in names if name.startswith("published/")
        )

    def _amounts(self) -> dict[str, Amount]:
        parts: dict[str, dict[str, Listed]] = defaultdict(dict)
        for name, one in self._listed.items():
            parts[name.partition("/")[0]][name] = one
        ordered = sorted(parts, key=lambda part: (_SPARKS.index(part) if part in _SPARKS else len(_SPARKS), part))
        return {part: Amount.of(parts[part]) for part in ordered}


def _of_chunks(key: str, chunks: Sequence[Chunk]) -> SinkFile:
    return SinkFile(key=key, rows=sum(chunk.rows for chunk in chunks), bytes=sum(chunk.bytes for chunk in chunks))


def _readers(spec: SpecFile, read: set[str]) -> list[str]:
    """Names of the sources that read any of these topics."""
    return [name for name, source in spec.job.spec.sources.items() if any(_reads(source, topic) for topic in read)]


def _reads(source: object, topic: str) -> bool:
    kafka = getattr(source, "kafka", None)
    if not isinstance(kafka, KafkaSource):
        return False
    return topic in kafka.named if kafka.pattern is None else re.fullmatch(kafka.pattern, topic) is not None
