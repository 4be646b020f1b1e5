"""Keys and certificates of one API server, created at its start and removed at its end."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

# The clocks of a machine and of its containers may differ slightly.
_BACKDATED = datetime.timedelta(minutes=5)
_LIFE = datetime.timedelta(days=1)


@dataclass(frozen=True)
class Pair:
    """A certificate and its private key, as PEM files."""

    certificate: Path
    key: Path


class Authority:
    """A private certificate authority.

    Args:
        folder: folder of its files and of those that it signs; readable for this user only.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("penstock-test-authority", ())
        signed = self._signed(self._name, self._key.public_key(), [x509.BasicConstraints(ca=True, path_length=0)])
        self.certificate = self._written("ca.crt", signed.public_bytes(serialization.Encoding.PEM))

    def server(self, name: str, addresses: Sequence[str], names: Sequence[str]) -> Pair:
        """Issue a certificate for a server.

        Args:
            name: name of its files.
            addresses: the server's IP addresses.
            names: the server's DNS names.
        """
        others: list[x509.GeneralName] = [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
        others += [x509.DNSName(dns) for dns in names]
        uses = [ExtendedKeyUsageOID.SERVER_AUTH]
        return self._pair(name, _name(name, ()), [x509.SubjectAlternativeName(others), x509.ExtendedKeyUsage(uses)])

    def client(self, user: str, groups: Sequence[str]) -> Pair:
        """Issue a Kubernetes client certificate: the common name is the user, an organization is a group."""
        return self._pair(user, _name(user, groups), [x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])])

    def signing_key(self, name: str) -> Pair:
        """Create a key pair that signs tokens; the certificate of the `Pair` is the bare public key."""
        key = ec.generate_private_key(ec.SECP256R1())
        public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        return Pair(self._written(f"{name}.pub", public), self._written(f"{name}.key", _pem(key)))

    def _pair(self, file: str, subject: x509.Name, extensions: Sequence[x509.ExtensionType]) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        signed = self._signed(subject, key.public_key(), [x509.BasicConstraints(ca=False, path_length=None), *extensions])
        certificate = self._written(f"{file}.crt", signed.public_bytes(serialization.Encoding.PEM))
        return Pair(certificate, self._written(f"{file}.key", _pem(key)))

    def _signed(
        self, subject: x509.Name, public_key: ec.EllipticCurvePublicKey, extensions: Sequence[x509.ExtensionType]
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = x509.CertificateBuilder(
            issuer_name=self._name,
            subject_name=subject,
            public_key=public_key,
            serial_number=x509.random_serial_number(),
            not_valid_before=now - _BACKDATED,
            not_valid_after=now + _LIFE,
        )
        for extension in extensions:
            builder = builder.add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
        authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(authority, critical=False)
        builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
        return builder.sign(self._key, hashes.SHA256())

    def _written(self, name: str, content: bytes) -> Path:
        path = self._folder / name
        path.touch(mode=0o600)
        path.write_bytes(content)
        return path


def _name(common: str, organizations: Sequence[str]) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, common)]
    return x509.Name(attributes + [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organizations])


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption())
