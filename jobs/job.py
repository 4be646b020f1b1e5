"""The object that is passed to an app's `build`, with which the app declares the job."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.errors import ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from penstock.jobs.blocks.lookups.table import LookupTable, OpenTable, open_table
from penstock.jobs.configuration.kafka_access import KafkaAccess
from penstock.jobs.errors import BadDeclaration
from penstock.jobs.sinks.newest import refuse_unordered
from penstock.jobs.sources.ends import InputEnds
from penstock.jobs.sources.opening import Offsets, Reading, open_source
from penstock.jobs.spec import Sink, StreamingJob, ToFiles, ToKafka, ToWebhook
from penstock.jobs.spec.connection_addresses import the_url
from penstock.jobs.sql.literals import located
from penstock.jobs.sql_views.declaring import result
from penstock.jobs.stream.dataframes import OutputMode, stream_of
from penstock.jobs.stream.declaration import Frames, declared_at
from penstock.jobs.stream.feedback import limited
from penstock.jobs.stream.selections import Selection
from penstock.jobs.stream.streams import EVENT_TIME, NO_SIDE_OUTPUT, ONLY_COUNTED, Stream, Tag


@dataclass(frozen=True)
class Output:
    """An output of a job: one call of ``job.write``, and one query.

    Args:
        stream: its rows.
        routes: sink -> what it gets of them.
    """

    stream: Stream
    routes: Mapping[str, Selection]


@dataclass
class Job:
    """A job while its app declares it.

    An app is a module with a function ``build(job)``. It takes its sources from the job, joins and transforms them, and declares where
    the rows go::

        def build(job: Job) -> None:
            clicks = job.source("clicks", "user STRING NOT NULL, at STRING, page STRING")
            job.side_output("errors")
            job.write(clicks.filter("page <> '/health'").select(user="user", page="page"), "out")

    or as Spark's own API has it: ``job.write(clicks.df.where("page <> '/health'").select("user", "page"), "out")``.

    Args:
        spec: the job's spec.
        session: Spark's session.
        brokers: how to reach them.
        offsets: source -> topic -> partition -> start offset of a query without a checkpoint; Kafka sources only.
        connections: name -> URL of databases and endpoints, credentials included.
        files_bucket: bucket of file sources that name none.
        schemas: name -> text of the Avro schemas beside the spec.
        max_offsets: source -> records of a micro-batch at most, for Kafka sources whose spec has no limit.
        ends: where the sources of a bounded run end; None: they have no end.
        read: whether they have been read up to there.
        outputs: streams with their sinks, in the order in which the app has declared them.
        side_outputs: tag -> sink.
        sources: those that the app has taken.
        fields: source -> the fields of its values, as the app has declared them.
        tags: tag -> the block of the app that may assign it to rows, if that is known before they arrive.
        places: what the app has declared, as errors call it -> the calls that have led there.
        open_table: reads the types of a lookup table from its database.
        records: source -> what is read in its place, in a test.
    """

    spec: StreamingJob
    session: SparkSession
    brokers: KafkaAccess
    offsets: Mapping[str, Offsets]
    connections: Mapping[str, str] = field(default_factory=dict)
    files_bucket: str = ""
    schemas: Mapping[str, str] = field(default_factory=dict)
    max_offsets: Mapping[str, int] = field(default_factory=dict)
    ends: InputEnds | None = None
    read: bool = False
    outputs: list[Output] = field(default_factory=list)
    side_outputs: dict[str, str] = field(default_factory=dict)
    sources: dict[str, Stream] = field(default_factory=dict)
    fields: dict[str, StructType] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[str, Frames] = field(default_factory=dict)
    open_table: OpenTable = open_table
    records: Mapping[str, DataFrame] = field(default_factory=dict)

    @property
    def parameters(self) -> Mapping[str, str | int | float | bool]:
        """The spec's ``spec.parameters``."""
        return self.spec.spec.parameters

    def source(self, name: str, schema: str, *, record: str | None = None) -> Stream:
        """An input of the spec as a stream. Its name is its uid: a checkpoint identifies the input by it.

        Args:
            name: below ``spec.sources``.
            schema: the value's fields as Spark DDL, ``user STRING NOT NULL, at STRING``; a record without a NOT NULL field is
                quarantined.
            record: name of an additional field, a struct of the row's record: topic, partition, offset, timestamp, key (bytes) and
                headers (array of key and value); None: without.

        Raises:
            BadDeclaration: no such source, the source taken twice, no schema, or one without the field of the event time.
        """
        known = self.spec.spec.sources
        if name not in known:
            raise BadDeclaration(
                path=f'job.source("{name}")', need=f"a source of the spec: {', '.join(known) or 'it has none'}", fix="correct the name"
            )
        if name in self.sources:
            raise BadDeclaration(
                path=f'job.source("{name}")', need="each source once; a second call would read it twice", fix="reuse the first stream"
            )
        declared_at(f'job.source("{name}")')
        place = (self.session, self.brokers, self.connections, self.spec, self.files_bucket, self.schemas, self.max_offsets)
        reading = Reading(*place, ends=self.ends, read=self.read, records=self.records)
        self.fields[name] = self._schema(name, schema)
        self.sources[name] = open_source(reading, name, self.fields[name], self.offsets.get(name, {}), record)
        return self.sources[name]

    def table(self, name: str) -> LookupTable:
        """A table of the spec, for `penstock.jobs.blocks.joins.lookup_join`; its types are read from its database.

        Raises:
            BadDeclaration: no such table.
            LookupTableDoesNotFit: JOB-071, the database has no such table or column.
            DatabaseUnreachable: JOB-053.
        """
        known = self.spec.spec.tables
        where = f'job.table("{name}")'
        if name not in known:
            raise BadDeclaration(path=where, need=f"a table of the spec: {', '.join(known) or 'it has none'}", fix="correct the name")
        url = the_url(self.connections, known[name].postgres.connection, "postgres", f"spec.tables.{name}.postgres.connection")
        return self.open_table(name, known[name], url)

    def sql(self, text: str, /, **streams: Stream) -> Stream:
        """The rows of a query in SQL as a stream, for blocks and for ``job.write``: ``job.sql("SELECT page FROM visits WHERE n > 1")``.

        The grammar is that of an app in SQL: docs/flink-operations.md. The text may create views, sources and functions first, and ends
        with a query. It reads, by their names, the streams that are passed, those that it creates, and the sources that the app has taken.

        Args:
            text: statements that create something, and a query, separated by semicolons.
            streams: name -> stream.

        Raises:
            PenstockError: SPEC-045, with the line and the column in the app if the text is a literal; several are raised as `Faults`.
        """
        caller = sys._getframe(1)
        script = located(text, Path(caller.f_code.co_filename), caller.f_lineno)
        return result(script, self, {**self.sources, **streams})

    def stream(self, frame: DataFrame, *, output_mode: OutputMode | None = None, event_time: str | None = None) -> Stream:
        """A DataFrame that was derived from ``.df`` of the job's sources as a stream, for Penstock's blocks.

        Args:
            frame: a streaming DataFrame; all of its columns are data.
            event_time: name of the column with its event time; None: ``event_time``, if it has such a column.
            output_mode: Spark's output mode; None: ``update`` for an aggregation that no event time closes, else ``append``.

        Raises:
            BadDeclaration: JOB-004, not such a DataFrame.
        """
        return stream_of(frame, self.session, "job.stream", output_mode, event_time)

    def write(
        self,
        rows: Stream | DataFrame,
        sinks: str | Mapping[str, Selection],
        *,
        output_mode: OutputMode | None = None,
        event_time: str | None = None,
    ) -> None:
        """Declares where the data rows go. Each call is a query of its own, which reads its sources by itself.

        Args:
            rows: an output: a stream, or a DataFrame that was derived from ``.df`` of the job's sources.
            sinks: a sink of the spec, or several, each with what it gets: None for all rows, a condition (SQL or a Column) for some of
                them, or a function of each micro-batch's DataFrame that returns the rows to write.
            output_mode: as in `stream`; only for a DataFrame.
            event_time: as in `stream`; only for a DataFrame.

        Raises:
            BadDeclaration: JOB-004, no such sink, no event time for dated files or for a sink that keeps a key's latest
                row, or a DataFrame that `stream` rejects.
        """
        stream = self._written(rows, output_mode, event_time)
        routes: dict[str, Selection] = {sinks: None} if isinstance(sinks, str) else dict(sinks)
        for sink in routes:
            where = f'job.write(..., "{sink}")'
            target = self._sink(sink, where)
            declared_at(where)
            if isinstance(target, ToFiles) and target.files.bucket_by == "event-date" and not stream.timed:
                need = "event time, by which the files are partitioned"
                raise BadDeclaration(
                    path=where, need=need, fix=f"set `time` of the source and keep the column {EVENT_TIME}, or bucketBy: none of the sink"
                )
            refuse_unordered(stream, target, where)
        self.outputs.append(Output(limited(stream, routes, self.spec.spec.kafka_sinks), routes))

    def _written(self, rows: Stream | DataFrame, output_mode: OutputMode | None, event_time: str | None) -> Stream:
        if not isinstance(rows, Stream):
            return stream_of(rows, self.session, "job.write", output_mode, event_time)
        asked = {"output_mode": output_mode, "event_time": event_time}
        given = ", ".join(f'{name}="{value}"' for name, value in asked.items() if value is not None)
        if given:
            need, fix = "neither for a stream: its blocks have decided both", "remove it; for the mode, use emit= of the block"
            raise BadDeclaration(path="job.write", given=given, need=need, fix=fix)
        return rows

    def side_output(self, sink: str, tag: str = Tag.QUARANTINED) -> None:
        """Declares where side-output rows go: quarantined ones, late ones (`Tag.LATE`), or those with a tag of the app.

        Raises:
            BadDeclaration: no such sink, one that is neither a topic nor an endpoint, or a tag that already has a sink.
        """
        where = f'job.side_output("{sink}")'
        target = self._sink(sink, where)
        if not isinstance(target, ToKafka | ToWebhook):
            raise BadDeclaration(path=where, need="a Kafka or webhook sink", fix="use such a sink of the spec")
        if tag in ONLY_COUNTED:
            raise BadDeclaration(path=where, given=str(tag), need="a tag whose rows are kept; these are only counted", fix="remove it")
        if "," in tag:
            raise BadDeclaration(path=where, given=tag, need="a tag without a comma, such as refunds", fix="rename the tag")
        if tag in self.side_outputs:
            need = f"one sink per tag; rows with the tag {tag} already go to {self.side_outputs[tag]}"
            raise BadDeclaration(path=where, need=need, fix="remove one of them, or use another tag")
        declared_at(where)
        self.side_outputs[tag] = sink

    def declared(self) -> list[Output]:
        """The outputs with their sinks, once the app has declared everything that it must.

        Raises:
            BadDeclaration: no output, an unused source of the spec, no side output for records that do not parse or for rows with
                another tag, one sink for two outputs, or for both data and a side output.
        """
        unused = [name for name in self.spec.spec.sources if name not in self.sources]
        if not self.outputs or not all(output.routes for output in self.outputs):
            raise BadDeclaration(path="build", need="job.write(stream, sink)", fix="write the output to a sink")
        if unused:
            raise BadDeclaration(
                path="build",
                need=f"a job.source call for each source of the spec; unused: {', '.join(unused)}",
                fix="remove it from the spec",
            )
        if Tag.QUARANTINED not in self.side_outputs:
            raise BadDeclaration(
                path="build", need='job.side_output("...") for malformed records', fix="add it with a Kafka sink of the spec"
            )
        self._refuse_lost_tags()
        self._refuse_shared_sinks()
        return self.outputs

    def _refuse_shared_sinks(self) -> None:
        written = [sink for output in self.outputs for sink in output.routes]
        for sink in written:
            where = f'job.write(..., "{sink}")'
            if written.count(sink) > 1:
                need = "a separate sink for each job.write: two queries would write the sink's files and manifests at the same time"
                raise BadDeclaration(path=where, need=need, fix="add a sink to the spec, or write a union of both")
            if sink in self.side_outputs.values():
                need = "a separate sink for side outputs: a sink is written only once per micro-batch"
                raise BadDeclaration(path=f'job.side_output("{sink}")', need=need, fix="add a sink to the spec")

    def _refuse_lost_tags(self) -> None:
        for tag, block in self.tags.items():
            if tag not in self.side_outputs and tag not in NO_SIDE_OUTPUT:
                need = f'a side output for its rows with the tag "{tag}"; declared: {", ".join(map(str, self.side_outputs))}'
                fix = f'add job.side_output(sink, "{tag}") (in SQL: SIDE OUTPUT sink FOR {tag}), or correct the tag'
                raise BadDeclaration(path=block, need=need, fix=fix)

    def _sink(self, name: str, where: str) -> Sink:
        known = self.spec.spec.sinks
        if name not in known:
            raise BadDeclaration(path=where, need=f"a sink of the spec: {', '.join(known) or 'it has none'}", fix="correct the name")
        return known[name]

    def _schema(self, name: str, schema: str) -> StructType:
        where, fix = f'job.source("{name}")', 'use a schema such as "user STRING NOT NULL, at STRING"'
        try:
            parsed = StructType.fromDDL(schema)
        except ParseException as error:
            raise BadDeclaration(path=where, given=schema, need=f"a Spark DDL schema; {error.getMessage() or error}", fix=fix) from None
        if not isinstance(parsed, StructType) or not parsed.fields:
            raise BadDeclaration(path=where, given=schema, need="a schema with named fields", fix=fix)
        # To Spark, names that differ in case alone are one.
        if len({field.lower() for field in parsed.names}) < len(parsed.names):
            raise BadDeclaration(path=where, given=schema, need="fields whose names differ by more than case", fix="rename or remove one")
        time = self.spec.spec.sources[name].time
        if time and time.field and time.field not in parsed.names:
            need = f"the event-time field, {time.field}"
            raise BadDeclaration(path=where, given=schema, need=need, fix="add it, or correct the source's `time` in the spec")
        return parsed
