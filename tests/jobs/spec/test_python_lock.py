"""The lock of an app's Python packages: what is taken from it, and the line of each mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.jobs.spec import load
from penstock.jobs.spec.python_lock import PythonLock, python_lock
from penstock.sizing.errors import PenstockError
from tests.app_locks import lock_of, spec, wheel

ONE, TWO = f"sha256:{'1' * 64}", f"sha256:{'2' * 64}"
INDEX = "https://packages.example/simple"
LOCK = f"""\
# by uv pip compile --generate-hashes
--index-url {INDEX}
geohash2==1.1 \\
    --hash={ONE} \\
    --hash={TWO}
    # via a team
Phone_Numbers[metadata]==8.13.0 ; python_full_version < '3.12' --hash={TWO}  # a comment
"""


def read(folder: Path, text: str) -> PythonLock:
    lock = python_lock(load(spec(folder, python=text)))
    assert lock is not None
    return lock


def faults(folder: Path, text: str) -> list[PenstockError]:
    with pytest.raises(PenstockError) as raised:
        read(folder, text)
    assert all(fault.need and fault.fix for fault in raised.value.errors)
    return list(raised.value.errors)


def test_a_lock_is_read_with_its_names_versions_hashes_and_lines(tmp_path: Path) -> None:
    lock = read(tmp_path, LOCK)
    assert [(one.name, one.version, one.hashes, one.at.line) for one in lock.packages] == [
        ("geohash2", "1.1", (ONE, TWO), 3),
        ("phone-numbers", "8.13.0", (TWO,), 7),
    ]
    assert lock.indexes == (("--index-url", INDEX),)


def test_what_an_installer_gets_is_read_as_the_same_lock_and_has_the_same_key(tmp_path: Path) -> None:
    lock = read(tmp_path, LOCK)
    again = read(tmp_path, lock.text())
    assert [one.requirement for one in again.packages] == [one.requirement for one in lock.packages]
    assert (again.key, again.indexes) == (lock.key, lock.indexes)
    assert read(tmp_path, LOCK.replace("1.1", "1.2")).key != lock.key


def test_a_spec_without_a_lock_has_none(tmp_path: Path) -> None:
    assert python_lock(load(spec(tmp_path))) is None


@pytest.mark.parametrize(
    ("line", "code", "need"),
    [
        ("geohash2==1.1", "SPEC-061", "hashes"),
        ("geohash2", "SPEC-061", "one version"),
        (f"geohash2>=1.1 --hash={ONE}", "SPEC-061", "one version"),
        (f"geohash2==1.* --hash={ONE}", "SPEC-061", "one version"),
        (f"geohash2==1.1,<2 --hash={ONE}", "SPEC-061", "one version"),
        ("geohash2==1.1 --hash=sha256:12", "SPEC-061", "64 lower-case hexadecimal digits"),
        (f"geohash2 @ https://example.org/geohash2-1.1-py3-none-any.whl --hash={ONE}", "SPEC-061", "a package by name"),
        (f"./geohash2-1.1-py3-none-any.whl --hash={ONE}", "SPEC-061", "a package by name"),
        ("-r other.lock", "SPEC-061", "no option but"),
        ("-e .", "SPEC-061", "no option but"),
        ("--no-binary :all:", "SPEC-061", "no option but"),
    ],
)
def test_a_line_that_locks_nothing_is_refused_with_its_line(tmp_path: Path, line: str, code: str, need: str) -> None:
    (fault,) = faults(tmp_path, f"# a lock\n\n{line}\n")
    assert (fault.code, str(fault.at)) == (code, f"{tmp_path / 'requirements.lock'}:3")
    assert need in fault.need


def test_all_mistakes_of_a_lock_are_reported_at_once(tmp_path: Path) -> None:
    found = faults(tmp_path, f"one\ntwo==1\nthree==1 \\\n    --hash={ONE} \\\n    --hash=md5:12\n")
    assert [fault.at.line for fault in found if fault.at] == [1, 2, 5]


def test_conflicts_are_reported_with_the_other_mistakes(tmp_path: Path) -> None:
    job = load(spec(tmp_path, python=f"two==2\npyspark==3.5.0 --hash={ONE}\n"))
    with pytest.raises(PenstockError) as raised:
        python_lock(job, {"pyspark": frozenset({"4.3.0"})})
    assert [fault.code for fault in raised.value.errors] == ["SPEC-061", "SPEC-062"]


def test_a_lock_that_is_missing_is_an_error_of_the_spec(tmp_path: Path) -> None:
    path = spec(tmp_path, python=LOCK)
    (tmp_path / "requirements.lock").unlink()
    with pytest.raises(PenstockError) as raised:
        python_lock(load(path))
    assert (raised.value.code, str(raised.value.at), raised.value.path) == ("SPEC-060", f"{path}:6", "spec.packages.python")
    assert "No such file" in raised.value.need


@pytest.mark.parametrize(
    ("content", "need"), [(b"", "at least one line"), (b"# nothing\n", "at least one line"), (b"\xff\xfe", "not UTF-8")]
)
def test_a_lock_with_nothing_to_read_is_an_error_of_the_spec(tmp_path: Path, content: bytes, need: str) -> None:
    path = spec(tmp_path, python="")
    (tmp_path / "requirements.lock").write_bytes(content)
    with pytest.raises(PenstockError, match="SPEC-060") as raised:
        python_lock(load(path))
    assert need in raised.value.need


def test_a_lock_may_have_any_name_and_folder_below_or_above_the_spec(tmp_path: Path) -> None:
    folder = tmp_path / "jobs"
    folder.mkdir()
    (tmp_path / "some locks").mkdir()
    (tmp_path / "some locks/s.lock").write_text(LOCK, encoding="utf-8")
    for name in ("../some locks/s.lock", "s.lock"):
        (folder / "s.lock").write_text(LOCK, encoding="utf-8")
        path = spec(folder, python="")
        path.write_text(path.read_text("utf-8").replace("requirements.lock", f'"{name}"'), encoding="utf-8")
        lock = python_lock(load(path))
        assert lock is not None and lock.file == folder / name


def test_an_absolute_path_is_no_path_beside_the_spec(tmp_path: Path) -> None:
    path = spec(tmp_path, python=LOCK)
    path.write_text(path.read_text("utf-8").replace("requirements.lock", "/tmp/requirements.lock"), encoding="utf-8")
    with pytest.raises(PenstockError, match="SPEC-006") as raised:
        load(path)
    assert raised.value.errors[0].path == "spec.packages.python"


def test_packages_that_every_job_has_are_left_to_it_and_another_version_of_one_is_refused(tmp_path: Path) -> None:
    job = load(spec(tmp_path, python=f"geohash2==1.1 --hash={ONE}\nPyArrow==26.0.1 --hash={ONE}\npyspark==4.3.0 --hash={ONE}\n"))
    known = {"pyarrow": frozenset({"26.0.1"}), "pyspark": frozenset({"4.3.0"})}
    lock = python_lock(job, known)
    assert lock is not None and [one.name for one in lock.packages] == ["geohash2"]
    with pytest.raises(PenstockError) as raised:
        python_lock(job, {"pyarrow": frozenset({"25.0", "24.0"}), "pyspark": frozenset({"4.2.0"})})
    first, second = raised.value.errors
    assert (first.code, first.at and first.at.line, first.given) == ("SPEC-062", 2, "pyarrow==26.0.1")
    assert first.need == "pyarrow==24.0 or 25.0, which every job has"
    assert (second.at and second.at.line, second.given, second.need) == (3, "pyspark==4.3.0", "pyspark==4.2.0, which every job has")


def test_a_wheel_beside_the_lock_has_a_hash_of_the_lock(tmp_path: Path) -> None:
    built = wheel(tmp_path / "wheels", {"a_teams_pages.py": ""})
    text = lock_of(built)
    assert read(tmp_path, text).wheel_folders == (tmp_path / "wheels",)
    wheel(tmp_path / "wheels", {"a_teams_pages.py": "changed = 1"})
    (fault,) = faults(tmp_path, text)
    assert (fault.code, str(fault.at)) == ("SPEC-063", f"{tmp_path / 'requirements.lock'}:2")
    assert fault.given.startswith("a_teams_pages-1.0-py3-none-any.whl with sha256:")


def test_a_locked_file_that_is_no_wheel_is_refused(tmp_path: Path) -> None:
    built = wheel(tmp_path / "wheels", {})
    built.write_bytes(b"no archive")
    (fault,) = faults(tmp_path, lock_of(built))
    assert (fault.code, fault.need) == ("SPEC-063", "a wheel: a ZIP archive with *.dist-info/METADATA")


def test_a_folder_of_wheels_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    (fault,) = faults(tmp_path, f"--find-links wheels\ngeohash2==1.1 --hash={ONE}\n")
    assert (fault.code, fault.given) == ("SPEC-063", f"--find-links {tmp_path / 'wheels'}")
