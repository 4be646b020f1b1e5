"""What an environment needs whose new VPC has no NAT gateway: nothing in it reaches the Internet."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.infra.environment import Environment
from penstock.infra.errors import EndpointMissing, MirrorMissing
from penstock.infra.parts.mirrors import Registry
from penstock.jobs.document import Path_
from penstock.sizing.errors import PenstockError

# Where pods read the passwords of databases and brokers.
SECRETS_SERVICE = "secretsmanager"


def endpoint_services(environment: Environment) -> tuple[str, ...]:
    """The AWS services with an interface endpoint in a new VPC, sorted."""
    network = environment.spec.network
    if network is None:
        return ()
    needed = {SECRETS_SERVICE} if network.interface_endpoints is None and _reads_secrets_privately(environment) else set()
    return tuple(sorted({*network.endpoint_services, *needed}))


def private_network_faults(environment: Environment) -> Iterator[tuple[Path_, PenstockError]]:
    """What is missing without a NAT gateway, with the place in the environment's file.

    Args:
        environment: to be deployed.

    Yields:
        INF-056 for each registry without a mirror, INF-057 without the endpoint of Secrets Manager.
    """
    network = environment.spec.network
    if network is None or not _is_private(environment):
        return
    for registry, users in _registries(environment).items():
        if registry not in environment.spec.mirrors:
            need = f"a mirror of {registry}, which nodes without a NAT gateway don't reach, for {users}"
            fix = f"mirrors: {{{registry}: HOST/PREFIX}}, a registry that the nodes reach, such as Amazon ECR"
            yield ("spec", "mirrors"), MirrorMissing(given=", ".join(environment.spec.mirrors) or "none", need=need, fix=fix)
    given = network.interface_endpoints
    if given is not None and SECRETS_SERVICE not in given and _reads_secrets_privately(environment):
        need = f"also {SECRETS_SERVICE}: pods read the secrets of spec.connections and spec.kafka through it"
        yield (
            ("spec", "network", "interfaceEndpoints"),
            EndpointMissing(given=", ".join(given), need=need, fix=f"add {SECRETS_SERVICE}, or leave out interfaceEndpoints"),
        )


def _is_private(environment: Environment) -> bool:
    network = environment.spec.network
    return network is not None and network.existing is None and network.nat_gateways == 0


def _reads_secrets_privately(environment: Environment) -> bool:
    kafka = environment.spec.kafka
    secrets = [*(one.secret for one in environment.spec.connections.values()), kafka.secret if kafka else None]
    return _is_private(environment) and any(secrets)


def _registries(environment: Environment) -> dict[Registry, str]:
    """Registry -> whose images come from it."""
    registries: dict[Registry, str] = {"public.ecr.aws": "Karpenter", "cr.fluentbit.io": "Fluent Bit"}
    if environment.spec.observability.prometheus != "none":
        registries["quay.io"] = "Prometheus"
    return registries
