"""What is fed to the topics of a job: the local input of its spec, over and over, or records made from the schemas of its sources."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from penstock.jobs.driver.root_cause import OwnCode, of_exception
from penstock.jobs.local.recording import Record
from penstock.jobs.spec import EventTime, FromKafka, SpecFile
from penstock.scripts.errors import InputFailed
from penstock.scripts.feeding.errors import NothingToFeed
from penstock.scripts.feeding.event_times import moved
from penstock.scripts.installation.app_packages import InstalledPackages
from penstock.scripts.local import input as local_input
from penstock.scripts.progress import Steps
from penstock.sizing.errors import PenstockError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

# Topic -> its records without an end, given the number of its partitions.
Feeds = Mapping[str, Callable[[int], Iterator[Record]]]
Topics = Callable[[str], Sequence[str]]


def feeds(spec: SpecFile, app_path: Sequence[Path], packages: InstalledPackages, seed: int, matching: Topics, steps: Steps) -> Feeds:
    """The records for each topic that the job reads.

    Args:
        spec: of the job.
        app_path: folders of its app, besides that of the spec.
        packages: of its app.
        seed: of the values that are made.
        matching: topics of the brokers that a pattern matches.
        steps: shows that Spark is started, which reads the schemas of an app.

    Raises:
        PenstockError: FEED-002, RUN-013, and what is wrong with the app.
    """
    sources = sources_of_topics(spec, matching)
    folders = (spec.path.parent.resolve(), *app_path)
    generators = local_input.generators(spec, folders)
    found = {
        topic: _again(coded(generators[topic], spec, topic, OwnCode(folders)), source.time)
        for topic, (_, source) in sources.items()
        if topic in generators
    }
    rest = {topic: one for topic, one in sources.items() if topic not in found}
    if rest:
        fields = declared(spec, app_path, packages, steps)
        for number, (topic, (name, source)) in enumerate(sorted(rest.items())):
            found[topic] = _made(spec, name, source, fields, Random(seed + number))
    # In the order of the spec.
    return {topic: found[topic] for topic in sources}


def sources_of_topics(spec: SpecFile, matching: Topics) -> dict[str, tuple[str, FromKafka]]:
    """Topic -> the first source that reads it, with its name.

    Args:
        spec: of the job.
        matching: topics of the brokers that a pattern matches.

    Raises:
        NothingToFeed: FEED-002, no source reads a topic.
    """
    found: dict[str, tuple[str, FromKafka]] = {}
    for name, source in spec.job.spec.sources.items():
        if isinstance(source, FromKafka):
            topics = source.kafka.named if source.kafka.pattern is None else matching(source.kafka.pattern)
            for topic in topics:
                found.setdefault(topic, (name, source))
    if not found:
        fault = NothingToFeed(need="a source that reads a topic", fix="add it, or write to what the job reads by other means")
        raise spec.document.locate(fault, ("spec", "sources"))
    return found


def coded(generator: local_input.Generator, spec: SpecFile, topic: str, own: OwnCode) -> local_input.Generator:
    """The generator, whose own exceptions are RUN-013 at its line in the spec."""

    def records(partitions: int) -> Iterator[Record]:
        try:
            yield from generator(partitions)
        except PenstockError:
            raise
        except Exception as error:
            fault = InputFailed(need=f"records; the generator raised {of_exception(error, own)}", fix="correct the generator")
            raise spec.document.locate(fault, ("spec", "local", "input", topic)) from error

    return records


def _again(generator: local_input.Generator, time: EventTime | None) -> Callable[[int], Iterator[Record]]:
    """The local input over and over, without flush events, which would close every window."""

    def records(partitions: int) -> Iterator[Record]:
        while True:
            some = False
            for record in _without_flush(generator(partitions)):
                some = True
                yield moved(record, time, datetime.now(UTC))
            if not some:
                return

    return records


def _without_flush(records: Iterable[Record]) -> Iterator[Record]:
    return (record for record in records if not record.flush)


def _made(
    spec: SpecFile, name: str, source: FromKafka, fields: Mapping[str, StructType], random: Random
) -> Callable[[int], Iterator[Record]]:
    from penstock.scripts.feeding.made_records import RecordMaker

    if name not in fields:
        fault = NothingToFeed(need="a source that the app reads, or local.input for its topics", fix="call job.source in the app")
        raise spec.document.locate(fault, ("spec", "sources", name))
    maker = RecordMaker(name, source, fields[name], random)

    def records(_: int) -> Iterator[Record]:
        while True:
            yield maker.record(datetime.now(UTC))

    return records


def declared(spec: SpecFile, app_path: Sequence[Path], packages: InstalledPackages, steps: Steps) -> dict[str, StructType]:
    """Source -> the fields that the app declares for it, as Spark reads them.

    Args:
        spec: of the job.
        app_path: folders of its app, besides that of the spec.
        packages: of its app.
        steps: shows that Spark is started.

    Raises:
        PenstockError: what is wrong with the app.
    """
    # PySpark takes long to import, and local input needs none.
    from penstock.jobs.driver.check import declared_fields
    from penstock.scripts.checking.session import analyzing

    with (
        steps.at("schemas", "starting Spark, which reads the schemas of the app's sources") as step,
        analyzing(packages.jars) as (session, folder),
    ):
        fields = declared_fields(spec, app_path, session, folder, packages.path)
        step.said = ", ".join(f"{name} {len(of.fields)} fields" for name, of in fields.items()) or "no sources"
    return fields
