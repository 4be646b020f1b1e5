"""What a client hears of the brokers beside the answers to its calls: a call only says that none has come in time."""

from __future__ import annotations

import re

from confluent_kafka import KafkaError

from penstock.jobs.configuration.kafka_access import MECHANISMS, WITH_SECRET, KafkaAccess
from penstock.jobs.kafka.errors import KafkaCredentialsRefused

# Of the client itself, and of the brokers: a wrong user or password, or a mechanism that the listener does not have.
_REFUSED = {KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError.UNSUPPORTED_SASL_MECHANISM}
# Alerts of a broker about the client's certificate. Source: RFC 8446, "Error Alerts", as OpenSSL names them.
_CERTIFICATE_ALERTS = re.compile(r"alert (bad certificate|unsupported certificate|certificate \w+|unknown ca|access denied)")


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
        """JOB-111 if the brokers have rejected the client's credentials; None if they have not, or have asked for none."""
        found = next((error for error in self._errors if self._is_refusal(error)), None)
        if found is None or self._access.security not in WITH_SECRET:
            return None
        need, fix = self._needed()
        path = "spec.kafka of the environment"
        return KafkaCredentialsRefused(path=path, given=f"{self._access.address}: {found.str()}", need=need, fix=fix)

    def _is_refusal(self, error: KafkaError) -> bool:
        if self._access.security == "mtls":
            return _CERTIFICATE_ALERTS.search(error.str()) is not None
        return error.code() in _REFUSED

    def _needed(self) -> tuple[str, str]:
        secret = self._access.secret
        if self._access.security == "mtls":
            need = f"a certificate of a CA that the brokers trust, in {secret}"
            return need, "store a certificate and its key that the brokers accept in the secret"
        need = f"user and password that the brokers accept with {MECHANISMS[self._access.security]}, in {secret}"
        return need, "correct username and password in the secret, or security: sasl-scram or sasl-plain, as the brokers' listener has it"
