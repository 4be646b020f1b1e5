"""The connections that a job gets from its environment: those that its spec names, and no others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.infra.environment import Environment
from penstock.infra.errors import ConnectionNotGiven, ConnectionOfAnotherKind
from penstock.infra.parts.connections import Connection
from penstock.infra.plans import JobPlan
from penstock.jobs.document import dotted
from penstock.jobs.spec import NamedConnection, SpecFile, connection_names, named_connections
from penstock.sizing.errors import PenstockError, raise_all


def connections_of(job: SpecFile, environment: Environment) -> dict[str, Connection]:
    """Name -> connection of a job whose names all exist in the environment.

    Args:
        job: its spec.
        environment: where it runs.
    """
    return {name: environment.spec.connections[name] for name in connection_names(job.job.spec)}


def urls(connections: Mapping[str, Connection]) -> dict[str, str]:
    """Name -> URL, for connections whose URL is not part of their secret."""
    return {name: one.url for name, one in connections.items() if one.url is not None}


def secrets(connections: Mapping[str, Connection]) -> dict[str, str]:
    """Name -> ARN of its secret, for connections with a secret."""
    return {name: one.secret for name, one in connections.items() if one.secret is not None}


def secrets_of(job: SpecFile, environment: Environment) -> dict[str, str | None]:
    """ARN of each secret that a job reads -> ARN of its KMS key, None for AWS's own: those of its connections, and of the brokers if the
    job has topics.
    """
    found = {one.secret: one.key for one in connections_of(job, environment).values() if one.secret is not None}
    kafka = environment.spec.kafka
    if kafka is not None and kafka.secret is not None and (job.job.spec.kafka_sources or job.job.spec.kafka_sinks):
        found[kafka.secret] = kafka.key
    return found


def ports(connections: Mapping[str, Connection]) -> tuple[int, ...]:
    """The distinct ports of the connections, sorted."""
    return tuple(sorted({one.port for one in connections.values()}))


def refuse_unknown_connections(jobs: Iterable[JobPlan], environment: Environment) -> None:
    """Rejects jobs that name connections which the environment does not define, or defines as another type.

    Raises:
        PenstockError: INF-070 and INF-071 with their lines; several are raised as `Faults`.
    """
    known = environment.spec.connections
    raise_all(
        job.spec.document.locate(fault, one.place)
        for job in jobs
        for one in named_connections(job.spec.job.spec)
        if (fault := _fault(one, known, environment)) is not None
    )


def _fault(one: NamedConnection, known: Mapping[str, Connection], environment: Environment) -> PenstockError | None:
    path = dotted(one.place)
    if one.name not in known:
        need = f"a connection of the environment {environment.name}: {', '.join(known) or 'it has none'}"
        fix = f"add {one.name} to the environment's connections, or correct the name"
        return ConnectionNotGiven(path=path, given=one.name, need=need, fix=fix)
    if known[one.name].kind != one.kind:
        need = f"a connection of kind {one.kind}; in the environment {environment.name} it is {known[one.name].kind}"
        return ConnectionOfAnotherKind(path=path, given=one.name, need=need, fix="correct the environment's connection, or use another one")
    return None
