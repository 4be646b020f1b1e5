"""A real broker with the listeners that MSK and other clusters have: TLS, and sign-in with an AWS identity, or with user and password."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import os
import shutil
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._scram import ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from penstock.scripts import layout
from penstock.scripts.local.kafka_broker import KafkaBroker

# MSK's Java library reads the region from the broker's name.
REGION = "eu-central-1"
HOST = f"b-1.{REGION}.penstock.test"
JAVA_SOURCES = Path(__file__).parent / "java"
_NAMES = ("TLS", "TOKENS", "JAVA", "SCRAM", "PASSWORD", "MUTUAL")
# The user of a test, whose password has the characters that files of settings escape.
USER, PASSWORD = "team.jobs", 'p"a\\ss; word=$x'
_LISTENERS = """
listeners=PLAINTEXT://127.0.0.1:{plain},CONTROLLER://127.0.0.1:{controller},{bound}
advertised.listeners=PLAINTEXT://127.0.0.1:{plain},{advertised}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,TLS:SSL,TOKENS:SASL_SSL,JAVA:SASL_SSL,\
SCRAM:SASL_SSL,PASSWORD:SASL_SSL,MUTUAL:SSL
ssl.keystore.type=PEM
ssl.keystore.location={keys}
listener.name.mutual.ssl.client.auth=required
listener.name.mutual.ssl.keystore.type=PEM
listener.name.mutual.ssl.keystore.location={keys}
listener.name.mutual.ssl.truststore.type=PEM
listener.name.mutual.ssl.truststore.location={authorities}
security.providers=MskListener
listener.name.tokens.sasl.enabled.mechanisms=OAUTHBEARER
listener.name.tokens.oauthbearer.sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required \
unsecuredLoginStringClaim_sub="broker";
listener.name.tokens.oauthbearer.sasl.server.callback.handler.class=MskListener$Tokens
listener.name.java.sasl.enabled.mechanisms=AWS_MSK_IAM
listener.name.java.aws_msk_iam.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required;
listener.name.scram.sasl.enabled.mechanisms=SCRAM-SHA-512
listener.name.scram.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.password.sasl.enabled.mechanisms=PLAIN
listener.name.password.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_{user}={password};
"""


class SecuredBroker(KafkaBroker):
    """A broker with more listeners.

    Args:
        folder: for all that it needs, removed by whoever made it.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder=folder / "data", log=folder / "kafka.log")
        self.ca_file = folder / "ca.pem"
        self.hosts_file = folder / "hosts"
        self._keys = folder / "broker.pem"
        self.root = Root()
        self._sent = folder / "sent"
        self.classes = folder / "classes"
        self._secured: dict[str, int] = {}
        _certify(self.root, self.ca_file, self._keys)
        self.hosts_file.write_text(f"127.0.0.1 {HOST}\n")
        _compile(self.classes)

    @property
    def tls(self) -> str:
        """Where TLS is enough."""
        return f"127.0.0.1:{self._secured['TLS']}"

    @property
    def tokens(self) -> str:
        """Where a token of an AWS identity is asked for, as MSK does of clients that are not Java's."""
        return f"127.0.0.1:{self._secured['TOKENS']}"

    @property
    def scram(self) -> str:
        """Where `USER` proves to know `PASSWORD`, with SCRAM-SHA-512, once `add_user` is done."""
        return f"127.0.0.1:{self._secured['SCRAM']}"

    @property
    def password(self) -> str:
        """Where `USER` sends `PASSWORD`, with PLAIN."""
        return f"127.0.0.1:{self._secured['PASSWORD']}"

    @property
    def mutual(self) -> str:
        """Where a client has a certificate of `root`."""
        return f"127.0.0.1:{self._secured['MUTUAL']}"

    def add_user(self) -> None:
        """Makes `USER` known to SCRAM."""
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        change = UserScramCredentialUpsertion(USER, info, PASSWORD.encode())
        admin = AdminClient({"bootstrap.servers": self.address})
        admin.alter_user_scram_credentials([change])[USER].result()

    @property
    def java(self) -> str:
        """Where MSK's own way to sign in is asked for."""
        return f"{HOST}:{self._secured['JAVA']}"

    def sent(self) -> list[tuple[str, str]]:
        """Mechanism and what a client has sent to be let in, in order."""
        lines = self._sent.read_text().splitlines() if self._sent.exists() else []
        return [(line.split()[0], base64.b64decode(line.split()[1]).decode()) for line in lines]

    def _settings(self, controller_port: int) -> Path:
        settings = super()._settings(controller_port)
        with ExitStack() as held:
            self._secured = {name: self._free(held, 0) for name in _NAMES}
        bound = ",".join(f"{name}://127.0.0.1:{port}" for name, port in self._secured.items())
        advertised = ",".join(f"{name}://{HOST if name == 'JAVA' else '127.0.0.1'}:{port}" for name, port in self._secured.items())
        kept = [line for line in settings.read_text().splitlines() if "listeners=" not in line and "protocol.map" not in line]
        more = _LISTENERS.format(
            plain=self._port,
            controller=controller_port,
            bound=bound,
            advertised=advertised,
            keys=self._keys,
            authorities=self.ca_file,
            user=USER,
            password=_in_settings(PASSWORD),
        )
        settings.write_text("\n".join(kept) + more)
        return settings

    def _java(self, main: str, *arguments: str) -> list[str]:
        command = super()._java(main, *arguments)
        at = command.index("-cp") + 1
        command[at] += f"{os.pathsep}{self.classes}"
        return [*command[: at - 1], f"-Dpenstock.sent={self._sent}", *command[at - 1 :]]


def _in_settings(text: str) -> str:
    """A string of JAAS in a file of Java's properties: each of them reads backslashes."""
    quoted = '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return quoted.replace("\\", "\\\\")


def _compile(folder: Path) -> None:
    if shutil.which("javac") is None:
        pytest.skip("javac is not in PATH: the broker's side of a sign-in with IAM is written in Java")
    folder.mkdir()
    sources = [str(source) for source in sorted(JAVA_SOURCES.glob("*.java"))]
    command = ["javac", "-d", str(folder), "-cp", layout.kafka_classpath(), *sources]
    compiled = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert compiled.returncode == 0, compiled.stderr


class Root:
    """A certificate authority of its own."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "root of a test")])
        self.certificate = _certificate(self._name, self._name, self._key, self._key, authority=True)

    @property
    def pem(self) -> str:
        """Its certificate."""
        return self.certificate.public_bytes(serialization.Encoding.PEM).decode()

    def client(self, days: int = 1, *, traditional: bool = False) -> tuple[str, str]:
        """A client's certificate and its key, in PEM.

        Args:
            days: how long it is valid; negative: it has expired.
            traditional: whether the key is in the format from before PKCS#8.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "jobs of a test")])
        made = _certificate(subject, self._name, key, self._key, days=days)
        format_ = serialization.PrivateFormat.TraditionalOpenSSL if traditional else serialization.PrivateFormat.PKCS8
        secret = key.private_bytes(serialization.Encoding.PEM, format_, serialization.NoEncryption())
        return made.public_bytes(serialization.Encoding.PEM).decode(), secret.decode()

    def server(self) -> str:
        """The broker's key and certificates, in one text."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.DNSName(HOST), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
        own = _certificate(subject, self._name, key, self._key, names=names)
        pem = serialization.Encoding.PEM
        secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        return (secret + own.public_bytes(pem)).decode() + self.pem


def _certify(root: Root, ca_file: Path, keys: Path) -> None:
    ca_file.write_text(root.pem)
    keys.write_text(root.server())


def _certificate(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    issuer_key: ec.EllipticCurvePrivateKey,
    *,
    authority: bool = False,
    names: x509.SubjectAlternativeName | None = None,
    days: int = 1,
) -> x509.Certificate:
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=30))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
    )
    if names is not None:
        made = made.add_extension(names, critical=False)
    return made.sign(issuer_key, hashes.SHA256())
