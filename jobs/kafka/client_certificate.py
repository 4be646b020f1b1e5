"""A client's certificate and key from a secret: checked before a client is made, because brokers only break off the connection.

Kafka's Java client reads keys in PKCS#8 alone, so keys in older formats are converted. What the secret contains appears in no error.
"""

from __future__ import annotations

import datetime

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

from penstock.jobs.configuration.kafka_access import ClientCertificate
from penstock.jobs.errors import SecretUnusable

NEED = "JSON with certificate and key, both in PEM"
_STORE = """store {"certificate": "-----BEGIN CERTIFICATE-----...", "key": "-----BEGIN PRIVATE KEY-----..."} in the secret"""


def client_certificate(chain: str | None, key: str | None, *, secret: str, path: str) -> ClientCertificate:
    """The certificate, and its key in PKCS#8.

    Args:
        chain: the certificate in PEM, followed by those of its issuers.
        key: its private key in PEM, without a passphrase.
        secret: ARN of the secret that has both, for errors.
        path: what names the secret, for errors.

    Raises:
        SecretUnusable: JOB-052, if one of them is missing or not PEM, the key is of another certificate, or the certificate is not valid
            today.
    """
    if not chain or not key:
        missing = " and ".join(name for name, value in (("certificate", chain), ("key", key)) if not value)
        raise SecretUnusable(path=path, given=f"{secret}, without {missing}", need=NEED, fix=_STORE)
    certificate, known = _certificate(chain, secret, path), _key(key, secret, path)
    if known.public_key() != certificate.public_key():
        need = "the private key of the certificate; with a chain, the client's own certificate is the first"
        raise SecretUnusable(path=path, given=f"{secret}, whose key is of another certificate", need=need, fix=_STORE)
    _need_valid_today(certificate, secret, path)
    pem, format_ = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return ClientCertificate(chain, known.private_bytes(pem, format_, serialization.NoEncryption()).decode())


def _certificate(chain: str, secret: str, path: str) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificates(chain.encode())[0]
    except ValueError:
        given = f"{secret}, whose certificate is not PEM"
        raise SecretUnusable(path=path, given=given, need="-----BEGIN CERTIFICATE-----, with its line breaks", fix=_STORE) from None


def _key(key: str, secret: str, path: str) -> PrivateKeyTypes:
    try:
        return serialization.load_pem_private_key(key.encode(), password=None)
    except TypeError:
        given, fix = f"{secret}, whose key has a passphrase", "remove it: openssl pkey -in key.pem"
        raise SecretUnusable(path=path, given=given, need="a key without a passphrase; the secret protects it", fix=fix) from None
    except ValueError:
        given = f"{secret}, whose key is not PEM"
        raise SecretUnusable(path=path, given=given, need="-----BEGIN PRIVATE KEY-----, with its line breaks", fix=_STORE) from None


def _need_valid_today(certificate: x509.Certificate, secret: str, path: str) -> None:
    now = datetime.datetime.now(datetime.UTC)
    since, until = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if not since <= now <= until:
        word = f"expired on {until:%Y-%m-%d}" if now > until else f"is not valid before {since:%Y-%m-%d}"
        need, fix = "a certificate that is valid today", "store a new certificate with its key in the secret"
        raise SecretUnusable(path=path, given=f"{secret}, whose certificate {word}", need=need, fix=fix)
