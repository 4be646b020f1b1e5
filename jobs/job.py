"""What an app's `build` is given, and what it declares with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.errors import ParseException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from jobs.errors import BadDeclaration
from jobs.sources import kafka
from jobs.spec import Sink, StreamingJob
from jobs.streams import Stream, Tag


@dataclass
class Job:
    """A job while it is declared.

    An app is a module with a function ``build(job)``. It takes its sources from the job, joins and transforms them, and says where the
    rows go::

        def build(job: Job) -> None:
            clicks = job.source("clicks", "user STRING NOT NULL, at STRING, page STRING")
            job.side_output("errors")
            job.write(clicks.filter("page <> '/health'").select(user="user", page="page"), "out")

    Args:
        spec: the job's spec.
        session: Spark's session.
        brokers: ``host:port``, several with commas.
        offsets: source -> partition -> first offset for a query without a checkpoint.
    """

    spec: StreamingJob
    session: SparkSession
    brokers: str
    offsets: Mapping[str, Mapping[int, int]]
    output: tuple[Stream, str] | None = None
    side_outputs: dict[Tag, str] = field(default_factory=dict)
    sources: dict[str, Stream] = field(default_factory=dict)

    def source(self, name: str, schema: str) -> Stream:
        """An input of the spec as a stream. Its name is its uid: a checkpoint knows the input by it.

        Args:
            name: below ``spec.sources``.
            schema: the value's fields as Spark writes them, ``user STRING NOT NULL, at STRING``; what is NOT NULL has to be there, or the
            record
                goes to quarantine.

        Raises:
            BadDeclaration: no such source, the source taken twice, no schema, or one without the field of the event time.
        """
        known = self.spec.spec.sources
        if name not in known:
            raise BadDeclaration(
                path=f'job.source("{name}")', need=f"a source of the spec: {', '.join(known) or 'it has none'}", fix="mend the name"
            )
        if name in self.sources:
            raise BadDeclaration(
                path=f'job.source("{name}")', need="each source once: taken twice, it would be read twice", fix="use the first stream"
            )
        self.sources[name] = kafka.stream(self.session, name, known[name], self._schema(name, schema), self.brokers, self.offsets[name])
        return self.sources[name]

    def write(self, stream: Stream, sink: str) -> None:
        """Where the data rows go.

        Raises:
            BadDeclaration: no such sink, a second output, or dated files without event time.
        """
        if self.output is not None:
            raise BadDeclaration(
                path=f'job.write(..., "{sink}")', need="one output; the job has one already", fix="take one of the two out"
            )
        target = self._sink(sink, f'job.write(..., "{sink}")')
        if target.files and target.files.bucket_by == "event-date" and not stream.timed:
            need = "event time, for the files are bucketed by it"
            raise BadDeclaration(path=f'job.write(..., "{sink}")', need=need, fix="give the source a `time`, or the sink bucketBy: none")
        self.output = (stream, sink)

    def side_output(self, sink: str, tag: Tag = Tag.QUARANTINED) -> None:
        """Where rows go that go aside: those in quarantine, or the late ones (`Tag.LATE`).

        Raises:
            BadDeclaration: no such sink, or one that is no topic.
        """
        if self._sink(sink, f'job.side_output("{sink}")').kafka is None:
            raise BadDeclaration(path=f'job.side_output("{sink}")', need="a Kafka sink", fix="name a sink of the spec with `kafka`")
        self.side_outputs[tag] = sink

    def declared(self) -> tuple[Stream, str]:
        """The output, once the app has declared all that it must.

        Raises:
            BadDeclaration: no output, a source of the spec that is not used, or nowhere to put records that do not parse.
        """
        unused = [name for name in self.spec.spec.sources if name not in self.sources]
        if self.output is None:
            raise BadDeclaration(path="build", need="job.write(stream, sink)", fix="say where the rows go")
        if unused:
            raise BadDeclaration(
                path="build", need=f"job.source for each source of the spec; unused: {', '.join(unused)}", fix="take it out of the spec"
            )
        if Tag.QUARANTINED not in self.side_outputs:
            raise BadDeclaration(
                path="build", need='job.side_output("...") for records that do not parse', fix="name a Kafka sink of the spec"
            )
        return self.output

    def _sink(self, name: str, where: str) -> Sink:
        known = self.spec.spec.sinks
        if name not in known:
            raise BadDeclaration(path=where, need=f"a sink of the spec: {', '.join(known) or 'it has none'}", fix="mend the name")
        return known[name]

    def _schema(self, name: str, schema: str) -> StructType:
        where, fix = f'job.source("{name}")', 'as "user STRING NOT NULL, at STRING"'
        try:
            parsed = StructType.fromDDL(schema)
        except ParseException as error:
            raise BadDeclaration(
                path=where, given=schema, need=f"a schema as Spark writes it; {error.getMessage() or error}", fix=fix
            ) from None
        if not isinstance(parsed, StructType) or not parsed.fields:
            raise BadDeclaration(path=where, given=schema, need="a schema of named fields", fix=fix)
        time = self.spec.spec.sources[name].time
        if time and time.field not in parsed.names:
            need = f"the field of the event time, {time.field}"
            raise BadDeclaration(path=where, given=schema, need=need, fix="add it, or mend the source's `time` in the spec")
        return parsed
