"""What a client hears of the brokers beside the answers to its calls: a call only says that none has come in time."""

from __future__ import annotations

from confluent_kafka import KafkaError

from penstock.jobs.configuration.kafka_access import MECHANISMS, KafkaAccess
from penstock.jobs.errors import KafkaCredentialsRefused

# Of the client itself, and of the brokers: a wrong user or password, or a mechanism that the listener does not have.
_REFUSED = {KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError.UNSUPPORTED_SASL_MECHANISM}


class Heard:
    """The errors of a client's connections: its ``error_cb``, which the client calls when it is polled.

    Args:
        access: the client's.
    """

    def __init__(self, access: KafkaAccess) -> None:
        self._access = access
        self._errors: list[KafkaError] = []

    def __call__(self, error: KafkaError) -> None:
        """Takes an error of the client."""
        self._errors.append(error)

    @property
    def texts(self) -> list[str]:
        """What the errors say, in order."""
        return [error.str() for error in self._errors]

    def refused(self) -> KafkaCredentialsRefused | None:
        """JOB-111 if the brokers have rejected user and password; None if they have not, or have asked for none."""
        found = next((error for error in self._errors if error.code() in _REFUSED), None)
        if found is None or self._access.security not in MECHANISMS:
            return None
        return KafkaCredentialsRefused(
            path="spec.kafka of the environment",
            given=f"{self._access.address}: {found.str()}",
            need=f"user and password that the brokers accept with {MECHANISMS[self._access.security]}, in {self._access.secret}",
            fix="correct username and password in the secret, or security: sasl-scram or sasl-plain, as the brokers' listener has it",
        )
