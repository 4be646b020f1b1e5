"""Checks a job without running it: its app is built, and its queries are analyzed, as the driver does it before it starts them.

Nothing outside of this process is asked. The sources have the schemas that the app declares and no records; tables of databases have
columns whose type is not known. What only shows in the records, or from brokers, buckets and databases, is left to a run.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.jobs.blocks.lookups.table import untyped_table
from penstock.jobs.configuration.runtime import RuntimeConfiguration
from penstock.jobs.document import Path_
from penstock.jobs.driver import no_services
from penstock.jobs.driver.bounded import BoundedRun
from penstock.jobs.driver.context import PlanningContext
from penstock.jobs.driver.planning import AnalyzedQuery, analyzed
from penstock.jobs.driver.query_flow import QueryFlow
from penstock.jobs.driver.root_cause import OwnCode
from penstock.jobs.driver.session import session_of
from penstock.jobs.sources.ends import InputEnds
from penstock.jobs.sources.opening import Offsets
from penstock.jobs.spec import SpecFile, app_module
from penstock.jobs.spec.avro_schemas import avro_schemas
from penstock.jobs.spec.errors import AppNotFound
from penstock.jobs.storage.checkpoint import Checkpoint
from penstock.jobs.storage.no_checkpoint import NoCheckpoint
from penstock.jobs.storage.query_record import QueryRecord

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

_BUCKET = "penstock-check"
# Of Hadoop: shows folders of this machine under the scheme of another file system.
_FILES = "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme"
_APP: Path_ = ("spec", "app")


def check(
    spec: SpecFile, app_path: Sequence[Path], session: SparkSession, folder: Path, package_path: Sequence[Path] = ()
) -> tuple[Path, ...]:
    """Builds the app of a job and analyzes its queries.

    Args:
        spec: of the job.
        app_path: folders of the app besides that of the spec.
        session: a session on this machine, from which one for this job is made.
        folder: an existing folder that stands for the buckets of sources of files.
        package_path: folders with the app's own Python packages.

    Returns:
        The files that the result depends on: the spec, the app, the modules that it imports from its folders, schemas and locks.

    Raises:
        PenstockError: SPEC-009, SPEC-010, SPEC-012, SPEC-030, SPEC-045, JOB-003, JOB-004, JOB-011, JOB-057, JOB-062, JOB-085, with the
            file and the line where that is known; several are raised as `Faults`.
    """
    app = _read_app(spec, app_path)
    with _analyzing(spec, app_path, session, folder, package_path) as (_, modules):
        beside = [spec.path.parent / name for name in [*avro_schemas(spec), *_locks(spec)]]
        return tuple(dict.fromkeys([spec.path, app, *modules(), *beside]))


def stored_queries(
    spec: SpecFile, app_path: Sequence[Path], session: SparkSession, folder: Path, package_path: Sequence[Path] = ()
) -> dict[str, QueryRecord]:
    """What the queries of a job keep as state, as a generation of it would record it. Nothing runs.

    Args:
        spec: of the job.
        app_path: as for `check`, as are the others.

    Returns:
        Query -> its sources and stateful operators; the first query's name is empty.

    Raises:
        PenstockError: as `check`.
    """
    _read_app(spec, app_path)
    return queries_on(None, spec, app_path, session, folder, package_path)


def flows(
    spec: SpecFile, app_path: Sequence[Path], session: SparkSession, folder: Path, package_path: Sequence[Path] = ()
) -> list[QueryFlow]:
    """The queries of a job, in the order in which its app writes them; arguments and errors as for `check`."""
    _read_app(spec, app_path)
    with _analyzing(spec, app_path, session, folder, package_path) as (queries, _):
        return [QueryFlow.of(query) for query in queries]


def declared_fields(
    spec: SpecFile, app_path: Sequence[Path], session: SparkSession, folder: Path, package_path: Sequence[Path] = ()
) -> dict[str, StructType]:
    """Source -> the fields of its values, as the app of a job declares them; arguments and errors as for `check`."""
    _read_app(spec, app_path)
    with _analyzing(spec, app_path, session, folder, package_path) as (queries, _):
        return dict(queries[0].job.fields)


def queries_on(
    checkpoint: Checkpoint | None,
    spec: SpecFile,
    app_path: Sequence[Path],
    session: SparkSession,
    folder: Path,
    package_path: Sequence[Path] = (),
) -> dict[str, QueryRecord]:
    """As `stored_queries`, of a job that goes on with a checkpoint; its app may be anywhere on the module path.

    Args:
        checkpoint: whose queries the app's are to have the order of; only their names are read. None: there is none.
        spec: of the job.
        app_path: as for `check`, as are the others.

    Raises:
        PenstockError: as `check`, and JOB-004 for an app whose first query was not the first before.
    """
    known = NoCheckpoint(checkpoint.uri, further=checkpoint.queries()) if checkpoint is not None else None
    with _analyzing(spec, app_path, session, folder, package_path, known) as (queries, _):
        return {query.share.query: query.record for query in queries}


@contextmanager
def _analyzing(
    spec: SpecFile,
    app_path: Sequence[Path],
    session: SparkSession,
    folder: Path,
    package_path: Sequence[Path],
    checkpoint: NoCheckpoint | None = None,
) -> Iterator[tuple[list[AnalyzedQuery], Callable[[], list[Path]]]]:
    """Context with a job's analyzed queries, and what returns the files of the app's modules."""
    folders = tuple(str(folder.resolve()) for folder in (spec.path.parent, *app_path))
    configuration = RuntimeConfiguration(
        spec=str(spec.path),
        app_path=folders,
        master="local[1]",
        brokers=no_services.BROKERS,
        job_folder=f"s3a://{_BUCKET}/{spec.job.metadata.name}",
        output_bucket=_BUCKET,
    )
    own = _own_session(spec, session, folder)
    starts = _starts(spec)
    with importing(folders, [str(one) for one in package_path]) as modules:
        context = PlanningContext(
            configuration=configuration,
            spec=spec,
            session=own,
            checkpoint=checkpoint or NoCheckpoint(configuration.job_folder),
            connections=no_services.urls(spec.job.spec),
            kafka=configuration.kafka,
            bounded=_bounded(spec, starts) if spec.job.spec.bounded else None,
            open_table=untyped_table,
        )
        yield analyzed(context, starts), modules


def _locks(spec: SpecFile) -> list[str]:
    return [name for name in (spec.job.spec.packages.python, spec.job.spec.packages.jars) if name is not None]


@contextmanager
def importing(folders: Sequence[str], packages: Sequence[str] = ()) -> Iterator[Callable[[], list[Path]]]:
    """Context in which an app's modules are imported from its folders; afterwards the next app may have modules of the same names.

    Args:
        folders: that come first.
        packages: folders of the app's packages, which come last, as in a local run.

    Yields:
        What returns the files of the modules from the app's folders.
    """
    path, before = list(sys.path), set(sys.modules)
    sys.path[:] = [*folders, *path, *packages]

    own = OwnCode(tuple(map(Path, folders)))

    def of_the_team(names: Iterable[str]) -> dict[str, Path]:
        files = {name: getattr(sys.modules[name], "__file__", None) or "" for name in names}
        return {name: Path(file) for name, file in files.items() if own.has(file)}

    try:
        yield lambda: sorted(of_the_team(list(sys.modules)).values())
    finally:
        sys.path[:] = path
        # Not those of installed packages, also if they lie below: some can't be imported twice.
        for name in of_the_team(set(sys.modules) - before):
            del sys.modules[name]


def _read_app(spec: SpecFile, app_path: Sequence[Path]) -> Path:
    try:
        path = app_module.find(spec.job.spec.app, spec.path.parent, app_path)
    except AppNotFound as error:
        raise spec.document.locate(error, _APP) from None
    app_module.read(path)
    return path


def _own_session(spec: SpecFile, session: SparkSession, folder: Path) -> SparkSession:
    """A session with the settings of the job that are the session's, and with folders for the buckets of its sources of files."""
    own = session_of(spec.job, session)
    own.conf.set("fs.s3a.impl", _FILES)
    for source in spec.job.spec.file_sources.values():
        bucket = source.bucket or _BUCKET
        (folder / bucket / source.path).mkdir(parents=True, exist_ok=True)
        own.conf.set(f"fs.viewfs.mounttable.{bucket}.linkFallback", (folder / bucket).as_uri())
    return own


def _starts(spec: SpecFile) -> dict[str, Offsets]:
    """Source -> topic -> its one partition -> 0; one topic for those that match a pattern."""
    return {name: {topic: {0: 0} for topic in source.named or ("matching",)} for name, source in spec.job.spec.kafka_sources.items()}


def _bounded(spec: SpecFile, starts: dict[str, Offsets]) -> BoundedRun:
    """A bounded run of no records."""
    topics = {name: {topic: dict(ends) for topic, ends in of.items()} for name, of in starts.items()}
    ends = InputEnds(topics=topics, files={name: [] for name in spec.job.spec.file_sources})
    checkpoint = NoCheckpoint(f"s3a://{_BUCKET}/{spec.job.metadata.name}", {"ends.json": ends.model_dump_json()})
    run = BoundedRun(spec.job.spec, checkpoint, _BUCKET)
    run.begin(starts)
    return run
