"""The certificates of the CA of external brokers, which the image does not trust by itself."""

from __future__ import annotations

import ssl
import time
from pathlib import Path

from penstock.infra.environment import Environment
from penstock.infra.errors import BrokerCaUnusable

_FIX = "name a PEM file with the certificate of the CA that issued the brokers' certificates"


def broker_ca(environment: Environment) -> str | None:
    """The CA certificates in PEM; None: the brokers' certificates are of a CA that systems trust.

    Args:
        environment: of the brokers.

    Raises:
        BrokerCaUnusable: INF-066.
    """
    file = None if environment.spec.kafka is None else environment.spec.kafka.ca_file
    if file is None:
        return None
    try:
        text = Path(file).read_text(encoding="utf-8")
        _need_valid(text)
    except (OSError, UnicodeDecodeError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) and not isinstance(error, ssl.SSLError) else None
        need = f"CA certificates in PEM that are valid today: {said or ' '.join(str(error).split())}"
        raise environment.locate(BrokerCaUnusable(need=need, fix=_FIX), "spec", "kafka", "caFile") from None
    return text


def _need_valid(text: str) -> None:
    """Raises ValueError with what is wrong: ssl.SSLError is one."""
    if "PRIVATE KEY" in text:
        raise ValueError("the file has a private key, which belongs in the secret")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(cadata=text)
    except (ssl.SSLError, ValueError):
        raise ValueError("no certificate in PEM can be read from the file") from None
    authorities = context.get_ca_certs()
    if not authorities:
        raise ValueError("the file has no certificate of a CA")
    for certificate in authorities:
        until = str(certificate["notAfter"])
        if ssl.cert_time_to_seconds(until) < time.time():
            raise ValueError(f"a certificate has expired on {until}")
