"""The lock of an app's jars: what is taken from it, and the line of each mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.jobs.spec import load
from penstock.jobs.spec.jar_lock import JarLock, artifact, jar_lock
from penstock.sizing.errors import PenstockError
from tests.app_locks import jar, sha256, spec

ONE = f"sha256:{'1' * 64}"


def read(folder: Path, text: str) -> JarLock:
    lock = jar_lock(load(spec(folder, jars=text)))
    assert lock is not None
    return lock


def fault_of(folder: Path, text: str) -> PenstockError:
    with pytest.raises(PenstockError) as raised:
        read(folder, text)
    (fault,) = raised.value.errors
    assert fault.need and fault.fix and fault.at is not None and fault.at.file == str(folder / "jars.lock")
    return fault


def test_coordinates_and_files_are_read_with_their_lines(tmp_path: Path) -> None:
    file = jar(tmp_path / "libs")
    text = f"org.example:sketches:6.1.1 --hash={ONE}\norg.example:native:linux:1.0 \\\n  --hash={ONE}\n"
    text += f"libs/our-functions.jar --hash=sha256:{sha256(file)}\n"
    lock = read(tmp_path, text)
    assert [(one.name, one.coordinates, one.file, one.at.line) for one in lock.jars] == [
        ("sketches-6.1.1.jar", ("org.example", "sketches", "", "6.1.1"), None, 1),
        ("native-1.0-linux.jar", ("org.example", "native", "linux", "1.0"), None, 2),
        ("our-functions.jar", None, file, 4),
    ]
    assert lock.key != read(tmp_path, text.replace("6.1.1", "6.1.2")).key


@pytest.mark.parametrize(
    ("line", "need"),
    [
        ("org.example:sketches:6.1.1", "SHA-256"),
        (f"org.example:sketches --hash={ONE}", "group:artifact:version"),
        (f"org.example:sketches:[6,7) --hash={ONE}", "group:artifact:version"),
        (f"org.example:sketches:7-SNAPSHOT --hash={ONE}", "group:artifact:version"),
        (f"/opt/sketches.jar --hash={ONE}", "group:artifact:version"),
        (f"org.example:sketches:6.1.1 --hash=sha512:{'1' * 128}", "SHA-256"),
        ("org.example:sketches:6.1.1 --hash=sha256:ABC", "64 lower-case hexadecimal digits"),
    ],
)
def test_a_line_that_locks_no_jar_is_refused_with_its_line(tmp_path: Path, line: str, need: str) -> None:
    fault = fault_of(tmp_path, f"# jars\n{line}\n")
    assert (fault.code, fault.at and fault.at.line) == ("SPEC-061", 2)
    assert need in fault.need


def test_two_versions_of_a_jar_are_refused(tmp_path: Path) -> None:
    fault = fault_of(tmp_path, f"org.example:sketches:6.1.1 --hash={ONE}\norg.example:sketches:6.0.0 --hash={ONE}\n")
    assert (fault.code, fault.at and fault.at.line, fault.need) == ("SPEC-061", 2, "each jar once; line 1 has sketches-6.1.1.jar")
    named = jar(tmp_path).rename(tmp_path / "sketches-5.0.jar")
    fault = fault_of(tmp_path, f"org.example:sketches:6.1.1 --hash={ONE}\nsketches-5.0.jar --hash=sha256:{sha256(named)}\n")
    assert (fault.code, fault.given) == ("SPEC-061", "sketches-5.0.jar")


def test_a_file_that_is_missing_changed_or_no_jar_is_refused(tmp_path: Path) -> None:
    text = f"libs/our-functions.jar --hash=sha256:{sha256(jar(tmp_path / 'libs'))}\n"
    changed = jar(tmp_path / "libs", "changed")
    fault = fault_of(tmp_path, text)
    assert (fault.code, fault.given) == ("SPEC-063", f"libs/our-functions.jar with sha256:{sha256(changed)}")
    changed.unlink()
    assert fault_of(tmp_path, text).need == "a jar, relative to the lock"
    changed.write_text("no archive")
    assert fault_of(tmp_path, f"libs/our-functions.jar --hash=sha256:{sha256(changed)}\n").need == "a jar"


def test_a_jar_that_every_job_has_is_refused_with_both_names(tmp_path: Path) -> None:
    job = load(spec(tmp_path, jars=f"org.apache.kafka:kafka-clients:3.8.0 --hash={ONE}\n"))
    assert jar_lock(job, {"sketches": "sketches-6.1.1.jar"}) == jar_lock(job)
    with pytest.raises(PenstockError) as raised:
        jar_lock(job, {"kafka-clients": "kafka-clients-3.9.2.jar"})
    (fault,) = raised.value.errors
    assert (fault.code, fault.given) == ("SPEC-062", "kafka-clients-3.8.0.jar")
    assert fault.need.endswith("every job has kafka-clients-3.9.2.jar")


@pytest.mark.parametrize(
    ("name", "of"), [("kafka-clients-3.9.2.jar", "kafka-clients"), ("spark-sql_2.13-4.3.0.jar", "spark-sql_2.13"), ("ours.jar", "ours")]
)
def test_an_artifact_is_the_name_of_a_jar_without_its_version(name: str, of: str) -> None:
    assert artifact(name) == of
