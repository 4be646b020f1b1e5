"""``--brokers``, ``--security``, ``--ca-file`` and ``--secret``: how a command reaches the brokers of an environment."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import get_args

from penstock.infra.environment import Environment
from penstock.infra.parts.part import SECRET_PATTERN
from penstock.jobs.configuration.kafka_access import WITH_SECRET, KafkaAccess, Security
from penstock.scripts.errors import WrongUsage
from penstock.scripts.topics.address import access


def add_brokers_arguments(parser: argparse.ArgumentParser) -> None:
    """All four."""
    parser.add_argument("--brokers", metavar="HOST:PORT", help="bootstrap servers, comma-separated (default: the environment's)")
    parser.add_argument("--security", choices=get_args(Security), help="security protocol of the listener (default: the environment's)")
    parser.add_argument(
        "--ca-file", type=Path, metavar="FILE", help="PEM file with the brokers' CA certificates (default: the environment's)"
    )
    parser.add_argument(
        "--secret",
        type=_secret,
        metavar="ARN",
        help="secret with the client's username and password, or certificate and key (default: the environment's)",
    )


def given_brokers_options(arguments: argparse.Namespace) -> list[str]:
    """Those of the four that were given."""
    named = {"--brokers": arguments.brokers, "--security": arguments.security, "--ca-file": arguments.ca_file, "--secret": arguments.secret}
    return [option for option, value in named.items() if value is not None]


def access_of(environment: Environment, arguments: argparse.Namespace) -> KafkaAccess:
    """How the brokers are reached.

    Raises:
        PenstockError: as `access`.
    """
    ca_file = None if arguments.ca_file is None else str(arguments.ca_file.resolve())
    return access(environment, arguments.brokers, arguments.security, ca_file, arguments.secret)


def access_with_or_without(environment: Environment | None, arguments: argparse.Namespace) -> KafkaAccess:
    """How the brokers are reached by a verb that needs no environment, unless clients sign in by it.

    Raises:
        PenstockError: USE-001, JOB-052, and as `access`.
    """
    if environment is not None:
        return access_of(environment, arguments)
    if arguments.brokers is None:
        raise WrongUsage(need="--environment ENV or --brokers HOST:PORT", fix="name the brokers, or the environment that has them")
    if arguments.security == "iam":
        raise WrongUsage(given="--security iam", need="--environment ENV, which has the region of the brokers", fix="name the environment")
    if arguments.security in WITH_SECRET and arguments.secret is None:
        need = "--secret ARN, which has the client's credentials, or --environment ENV, which names it"
        raise WrongUsage(given=f"--security {arguments.security}", need=need, fix="name the secret, or the environment")
    from penstock.jobs.kafka.credentials import signed_in  # only here: with an environment its own client reads the secret

    ca_file = None if arguments.ca_file is None else str(arguments.ca_file)
    return signed_in(KafkaAccess(arguments.brokers, arguments.security or "plaintext", None, ca_file, arguments.secret))


def _secret(text: str) -> str:
    if not re.fullmatch(SECRET_PATTERN, text):
        need = "arn:aws:secretsmanager:REGION:ACCOUNT:secret:NAME-SUFFIX"
        raise argparse.ArgumentTypeError(f"{text!r} is not the whole ARN of a secret: {need} (aws secretsmanager describe-secret)")
    return text
