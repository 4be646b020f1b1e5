"""Certificates of an authority, for brokers with certificates of a private CA."""

from __future__ import annotations

import datetime

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

KEY = ec.generate_private_key(ec.SECP256R1())


def authority(days: int = 1, *, ca: bool = True) -> str:
    """A certificate in PEM that is valid for so many days; negative: it has expired."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a CA")])
    now = datetime.datetime.now(datetime.UTC)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(KEY.public_key()).serial_number(1)
    made = made.not_valid_before(now - datetime.timedelta(days=30)).not_valid_after(now + datetime.timedelta(days=days))
    made = made.add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
    return made.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()
