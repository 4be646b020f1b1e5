"""The packages of a session's jobs: Python's are each job's own, jars are on one class path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from penstock.infra.app_packages import JARS_CONF, AppPackages
from penstock.infra.environment import Environment
from penstock.infra.errors import ImagesOfSessionDiffer, JarsOfSessionDiffer
from penstock.jobs.spec.jar_lock import LockedJar
from penstock.sizing.errors import PenstockError


def shared_jars(packages: Sequence[AppPackages]) -> dict[str, str]:
    """Spark's setting with the jars of several jobs, each of them once.

    Args:
        packages: of the jobs; jars of one name are the same file, see `jar_faults`.
    """
    paths = [path for one in packages for path in one.spark_conf.get(JARS_CONF, "").split(",") if path]
    by_name = {path.rpartition("/")[2]: path for path in reversed(paths)}
    kept = [path for path in dict.fromkeys(paths) if by_name[path.rpartition("/")[2]] == path]
    return {JARS_CONF: ",".join(kept)} if kept else {}


def jar_faults(environment: Environment, session: str, packages: Mapping[str, AppPackages]) -> Iterator[PenstockError]:
    """INF-086 for each jar of which two jobs of a session have different versions.

    Args:
        environment: of the session.
        session: its name.
        packages: job -> its packages.
    """
    first: dict[str, tuple[str, LockedJar]] = {}
    for job, one in packages.items():
        for jar in one.jars.jars if one.jars is not None else ():
            other, before = first.setdefault(jar.identity, (job, jar))
            if before.sha256 != jar.sha256:
                given = f"{before.given} in {other}, {jar.given} in {job}"
                need = "one version of a jar: the jobs of a session share a class path"
                fault = JarsOfSessionDiffer(path=f"session {session}", given=given, need=need, fix="use the same version in both locks")
                yield environment.locate(fault, *_place(environment, session))


def image_faults(environment: Environment, session: str, tags: Mapping[str, str]) -> Iterator[PenstockError]:
    """INF-085 if the jobs of a session have different images.

    Args:
        environment: of the session.
        session: its name.
        tags: job of the session -> tag of its image.
    """
    if len(set(tags.values())) > 1:
        given = ", ".join(f"{job} {tag}" for job, tag in tags.items())
        fix = "give them one tag in registry.imageTags and PENSTOCK_IMAGE_TAG, or take one of them out of the session"
        need = "one image for all jobs of the session: they share a driver and executors"
        fault = ImagesOfSessionDiffer(path=f"session {session}", given=given, need=need, fix=fix)
        yield environment.locate(fault, *_place(environment, session))


def _place(environment: Environment, session: str) -> tuple[str | int, ...]:
    number = next(number for number, one in enumerate(environment.spec.sessions) if one.name == session)
    return ("spec", "sessions", number)
