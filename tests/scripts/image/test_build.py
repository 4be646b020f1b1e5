from __future__ import annotations

import os
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest

from penstock.scripts.image import context
from penstock.scripts.image.build import built_archive
from penstock.scripts.image.builder import Builder
from penstock.scripts.image.errors import BuildNotPermitted, BuildToolMissing, ImageNotBuilt
from penstock.scripts.image.workspace import Workspace, workspace
from penstock.scripts.installation.cache import Cache
from tests.infra.dockerfile import stages


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def test_all_that_the_dockerfile_copies_is_in_the_context(tmp_path: Path) -> None:
    wheel = tmp_path / "penstock_kit-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w"):
        pass
    folder = tmp_path / "context"
    context.fill(folder, wheel)
    for stage in stages(folder / context.DOCKERFILE):
        for text in stage.of("COPY"):
            sources = [word for word in text.split()[:-1] if not text.startswith("--from=")]
            # The apps' packages are another verb's.
            assert all(list(folder.glob(source.rstrip("/"))) for source in sources if source != "dist/packages*"), text


def test_what_is_neither_a_checkout_nor_installed_has_no_wheel_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "ROOT", tmp_path)
    with workspace(cache=Cache(tmp_path / "cache")) as work, pytest.raises(ImageNotBuilt, match="a checkout of Penstock"):
        context.penstock_wheel(work)


def test_the_same_files_give_the_same_layers_wherever_and_whenever_they_were_written(tmp_path: Path) -> None:
    for name, mode, time_s in (("one", 0o600, 1), ("other", 0o664, 2)):
        file = tmp_path / name / "app" / "job.py"
        file.parent.mkdir(parents=True)
        file.write_text("PARALLELISM = 1\n")
        file.chmod(mode)
        os.utime(file, (time_s, time_s))
        context.settle(tmp_path / name)
    one, other = (tmp_path / name / "app" for name in ("one", "other"))
    assert context.checksum(one) == context.checksum(other)
    assert [(path.stat().st_mode, path.stat().st_mtime) for path in (one / "job.py", other / "job.py")] == [(0o100644, context.TIME_S)] * 2
    (other / "job.py").write_text("PARALLELISM = 2\n")
    assert context.checksum(one) != context.checksum(other)


def test_bytecode_beside_the_sources_does_not_change_the_image(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text("")
    before = context.checksum(tmp_path)
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__/job.cpython-311.pyc").write_bytes(b"1")
    assert context.checksum(tmp_path) == before


def test_what_a_killed_build_has_left_goes_with_the_next_one(cache: Cache) -> None:
    left = cache.folder / "image/tmp/run/overlay"
    left.mkdir(parents=True)
    with workspace(cache=cache) as work:
        assert list(work.temporary.iterdir()) == []
        (work.temporary / "kit").mkdir()
    assert not (cache.folder / "image/tmp").exists()


def test_the_two_newest_archives_are_kept(cache: Cache) -> None:
    with workspace(cache=cache) as work:
        for number, name in enumerate(("oldest", "newer", "newest")):
            (work.archives / name).mkdir()
            os.utime(work.archives / name, (number, number))
        work.forget_old_archives()
        assert {path.name for path in work.archives.iterdir()} == {"newer", "newest"}


def test_a_failed_build_has_the_end_of_its_log_and_says_where_all_of_it_is(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    said: list[str] = []
    work = Workspace(tmp_path, said.append)
    with pytest.raises(ImageNotBuilt) as raised:
        work.run("kit", [sys.executable, "-c", "print('STEP 3: RUN mvn'); raise SystemExit(7)"])
    error = raised.value
    assert error.code == "IMG-010"
    assert error.given == f"code 7; the end of {tmp_path}/logs/kit.log:\nSTEP 3: RUN mvn"
    assert f"check {tmp_path}/logs/kit.log" in error.fix
    assert "STEP 3: RUN mvn" in (tmp_path / "logs/kit.log").read_text()


def test_without_buildah_nothing_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BuildToolMissing) as raised:
        built_archive()
    assert (raised.value.code, raised.value.given) == ("IMG-001", "no buildah and no unshare")


def test_without_root_nothing_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    user = os.geteuid()
    with tempfile.TemporaryDirectory() as programs:
        # Another user may not look into pytest's folders. The programs are only looked for: the user comes before any of them runs.
        Path(programs).chmod(0o755)
        for program in ("buildah", "unshare"):
            (Path(programs) / program).touch(0o755)
        monkeypatch.setenv("PATH", programs)
        if user == 0:
            os.seteuid(65534)
        try:
            with pytest.raises(BuildNotPermitted) as raised:
                Builder(Workspace(tmp_path, print))
        finally:
            os.seteuid(user)
    assert (raised.value.code, raised.value.given) == ("IMG-002", f"user id {user or 65534}")
