"""Base images assembled from packages, for machines that reach no image registry: Debian, PySpark's distribution, Debian's Maven, uv's.

Each has the name of the official one below ``localhost/assembled/``, so that neither is taken for the other.
"""

from __future__ import annotations

import os
import re
import shutil
import ssl
import tarfile
from collections.abc import Iterator, Mapping
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.resources import files
from pathlib import Path, PurePosixPath

from penstock.scripts.image import context
from penstock.scripts.image.builder import ISOLATED, Build, Builder
from penstock.scripts.image.errors import BasesNotAssembled, BuildNotPermitted
from penstock.scripts.image.workspace import Workspace

PREFIX = "localhost/assembled"
SUITE = "bookworm"
SYSTEM = f"{PREFIX}/debian:{SUITE}"
# Packages that the system needs before the authorities are there.
_PACKAGES = "ca-certificates"
# What no container needs. Installing a JRE needs the folder of the manual's first section.
_UNNEEDED = ("debootstrap", "usr/share/doc", "usr/share/man", "usr/share/locale", "var/cache/apt", "var/lib/apt/lists", "var/log")
_CREATED = ("usr/share/man/man1", "var/cache/apt/archives/partial", "var/lib/apt/lists/partial", "var/log/apt")
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
# Folders of PySpark's distribution that the official image has at the top of Spark's folder.
_TOP = {"bin", "data", "examples", "jars", "licenses", "sbin"}
_FOLDER = Path(str(files("penstock.scripts.image"))) / "bases"


def assemble(builder: Builder, names: Mapping[str, str]) -> dict[str, str]:
    """Assembles the bases that are missing.

    Args:
        builder: builds them.
        names: ``SPARK``, ``MAVEN`` and ``UV`` -> name and tag of the official image.

    Returns:
        The build arguments that select them.

    Raises:
        PenstockError: IMG-002, IMG-003, IMG-010.
    """
    spark, uv = installed("pyspark", names["SPARK"]), installed("uv", names["UV"])
    folder = builder.work.temporary / "bases"
    folder.mkdir()
    _system(builder, folder / "system")
    made = {name: f"{PREFIX}/{official}" for name, official in names.items()}
    _spark(builder, spark, folder / "spark", made["SPARK"])
    _maven(builder, folder / "maven", made["MAVEN"])
    _uv(builder, uv, folder / "uv", made["UV"])
    shutil.rmtree(folder)
    return {f"{name}_{part}": value for name, image in made.items() for part, value in zip(("IMAGE", "TAG"), _split(image), strict=True)}


def inputs() -> str:
    """A checksum of what the bases are assembled from: this folder, the distributions' versions, this machine's authorities."""
    said = [f"{name} {distribution(name).version}" for name in ("pyspark", "uv")]
    return context.checksum(_FOLDER, SUITE, *said, *authorities())


def _system(builder: Builder, folder: Path) -> None:
    key = context.checksum(_FOLDER / "system.Dockerfile", SUITE, _PACKAGES, *authorities())
    if builder.inputs_of(SYSTEM) == key:
        return
    root = folder.with_name("root")
    (folder / "authorities").mkdir(parents=True)
    _debootstrap(builder.work, root)
    shipped = set(_CERTIFICATE.findall((root / "etc/ssl/certs/ca-certificates.crt").read_text("ascii")))
    for number, certificate in enumerate(one for one in authorities() if one not in shipped):
        (folder / f"authorities/machine-{number}.crt").write_text(f"{certificate}\n", encoding="ascii")
    with tarfile.open(folder / "system.tar", "w") as archive:
        archive.add(root, ".")
    shutil.rmtree(root)
    builder.build(Build(name="base-system", image=SYSTEM, file=_FOLDER / "system.Dockerfile", context=folder, inputs=key))


def _debootstrap(work: Workspace, root: Path) -> None:
    if shutil.which("debootstrap") is None:
        fix = "apt-get install debootstrap"
        raise BasesNotAssembled(path="debootstrap", given="not in PATH", need="debootstrap, which installs a minimal Debian", fix=fix)
    if os.geteuid() != 0:
        need = "root, for debootstrap"
        raise BuildNotPermitted(path="debootstrap", given=f"user id {os.geteuid()}", need=need, fix="run it as root (sudo)")
    work.progress(f"installing Debian {SUITE}")
    work.run("debootstrap", [*ISOLATED, "debootstrap", "--variant=minbase", f"--include={_PACKAGES}", SUITE, str(root)])
    for name in _UNNEEDED:
        shutil.rmtree(root / name, ignore_errors=True)
    for name in _CREATED:
        (root / name).mkdir(parents=True)


def _spark(builder: Builder, spark: Distribution, folder: Path, image: str) -> None:
    key = context.checksum(_FOLDER, SYSTEM, spark.version, builder.inputs_of(SYSTEM) or "")
    if builder.inputs_of(image) == key:
        return
    for source, target in sparks_files(spark):
        context.place(source, folder / "spark" / target)
    for name in ("entrypoint.sh", "decom.sh"):
        context.place(_FOLDER / name, folder / name)
        (folder / name).chmod(0o755)
    file = _FOLDER / "spark.Dockerfile"
    builder.build(Build(name="base-spark", image=image, file=file, context=folder, inputs=key, arguments={"SYSTEM": SYSTEM}))


def sparks_files(spark: Distribution) -> Iterator[tuple[Path, PurePosixPath]]:
    """The files of the distribution, and where the official image has them below Spark's folder."""
    for listed in spark.files or []:
        inside = PurePosixPath(listed)
        if inside.parts[0] != "pyspark" or inside.suffix in (".cmd", ".pyc"):
            continue
        rest = inside.relative_to("pyspark")
        source = Path(str(spark.locate_file(listed)))
        if rest.parts[0] in _TOP or rest.parts[:2] == ("python", "lib"):
            yield source, rest
        elif rest.parts[0] != "python":
            yield source, "python" / inside


def _maven(builder: Builder, folder: Path, image: str) -> None:
    folder.mkdir()
    file = _FOLDER / "maven.Dockerfile"
    key = context.checksum(file, SYSTEM, builder.inputs_of(SYSTEM) or "")
    builder.build(Build(name="base-maven", image=image, file=file, context=folder, inputs=key, arguments={"SYSTEM": SYSTEM}))


def _uv(builder: Builder, uv: Distribution, folder: Path, image: str) -> None:
    program = next(Path(str(uv.locate_file(file))) for file in uv.files or [] if file.name == "uv")
    context.place(program.resolve(), folder / "uv")
    file = _FOLDER / "uv.Dockerfile"
    builder.build(Build(name="base-uv", image=image, file=file, context=folder, inputs=context.checksum(file, uv.version)))


def installed(name: str, official: str) -> Distribution:
    """An installed distribution.

    Args:
        name: of the distribution.
        official: name and tag of the image, whose version it must have.

    Raises:
        BasesNotAssembled: IMG-003.
    """
    wanted = _split(official)[1].split("-")[0]
    try:
        found = distribution(name)
    except PackageNotFoundError:
        given = "not installed"
    else:
        if found.version == wanted:
            return found
        given = found.version
    raise BasesNotAssembled(path=name, given=given, need=f"{name} {wanted}, as {official} has", fix=f"pip install {name}=={wanted}")


def authorities() -> list[str]:
    """The certificates that this machine trusts, in PEM, sorted: that of a proxy which inspects TLS is among them."""
    file = os.environ.get("SSL_CERT_FILE", ssl.get_default_verify_paths().cafile)
    if not file or not Path(file).is_file():
        return []
    return sorted(set(_CERTIFICATE.findall(Path(file).read_text("utf-8", errors="replace"))))


def _split(image: str) -> tuple[str, str]:
    name, _, tag = image.rpartition(":")
    return name, tag
