"""An image with a team's app, built on assembled bases."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks.image_start import Container, unpacked
from penstock.infra.manifests.client_mode_conf import CLASS_DATA
from penstock.scripts.image.build import BuiltImage, Request, build_with_apps
from penstock.scripts.image.errors import ImageNotBuilt
from penstock.sizing.errors import ToolMissing
from tests.pods import registry
from tests.pods.registry import Registry

NAME = "localhost/penstock-tests/team:1"


def built(request: Request) -> BuiltImage:
    try:
        return build_with_apps(request)
    except ToolMissing as error:
        pytest.skip(error.render())


def package(folder: Path, first_line: str) -> Path:
    """A folder with a package of two modules."""
    (folder / "my_team").mkdir()
    (folder / "my_team/__init__.py").write_text(f"{first_line}\n")
    (folder / "my_team/rules.py").write_text("LIMIT = 5\n")
    return folder


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of an image with an app of several files."""
    folder = tmp_path_factory.mktemp("team")
    apps = (package(folder, "from my_team.rules import LIMIT"),)
    file = folder / "image.tar"
    assert built(Request(NAME, apps, assembled=True, file=file)).size_bytes > 10**9
    return file


def test_an_app_of_several_files_is_in_the_image(team: Path) -> None:
    with tarfile.open(team) as archive:
        layers = [name for name in archive.getnames() if name.endswith(".tar")]
        names: set[str] = set()
        for layer in layers:
            inside = archive.extractfile(layer)
            assert inside is not None
            with tarfile.open(fileobj=inside) as content:
                names |= {name for name in content.getnames() if "opt/penstock/app/" in name}
    assert {"opt/penstock/app/my_team/__init__.py", "opt/penstock/app/my_team/rules.py"} <= names
    # Compiled in the build: a pod's root file system is read-only.
    assert any(name.endswith(".pyc") for name in names)


@pytest.mark.parametrize("class_path", ["{conf}/:{jars}/*", "{conf}::{jars}/*:/opt/spark/work-dir:"], ids=["driver", "executor"])
def test_its_jvms_map_the_archive_of_classes(team: Path, tmp_path: Path, class_path: str) -> None:
    """As the user of pods; with another class path the JVM, which is asked to end then, ends."""
    container = Container(tmp_path / "root", unpacked(team, tmp_path / "root"), "")
    program = "org.apache.spark.deploy.SparkSubmit"
    options = [f"-XX:SharedArchiveFile={CLASS_DATA}", "-Xshare:on", "-Xlog:class+load"]
    path = class_path.format(conf="/opt/spark/conf", jars="/opt/spark/jars")
    with container.running("java", *options, "-cp", path, program, "--version") as ran:
        assert f"{program} source: shared objects file (top)" in ran.stdout.read().decode()
    with container.running("java", *options, "-cp", f"/opt/penstock/run.py:{path}", program, "--version") as ran:
        assert "(top)" not in ran.stdout.read().decode()


def test_an_app_that_cannot_be_imported_is_reported_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # buildah may lose what a step says just before it fails. Here it always does.
    silent, buildah = tmp_path / "bin/buildah", shutil.which("buildah")
    silent.parent.mkdir()
    silent.write_text(f'#!/bin/sh\ncase " $* " in *" bud "*) exec {buildah} "$@" > /dev/null 2>&1 ;; *) exec {buildah} "$@" ;; esac\n')
    silent.chmod(0o755)
    monkeypatch.setenv("PATH", f"{silent.parent}:{os.environ['PATH']}")
    apps = (package(tmp_path, "import no_such_module"),)
    with pytest.raises(ImageNotBuilt) as raised:
        built(Request(NAME, apps, assembled=True))
    assert 'File "/opt/penstock/app/my_team/__init__.py", line 1' in str(raised.value.given)


@pytest.fixture
def images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tell: Callable[[str], None]) -> Iterator[Registry]:
    """A registry on the loopback, which buildah is told not to expect TLS of."""
    with registry.serving(tmp_path / "registry", "127.0.0.1", tell) as served:
        settings = tmp_path / "registries.conf"
        settings.write_text(f'[[registry]]\nlocation = "{served.address}"\ninsecure = true\n')
        monkeypatch.setenv("CONTAINERS_REGISTRIES_CONF", str(settings))
        yield served


def test_an_image_that_is_pushed_is_in_the_registry_as_it_was_built(tmp_path: Path, images: Registry) -> None:
    file = tmp_path / "image.tar"
    apps = (package(tmp_path, "from my_team.rules import LIMIT"),)
    pushed = built(Request(f"{images.address}/team/jobs:1.4.2", apps, assembled=True, file=file, push=True))
    manifest, digest = images.manifest("team/jobs", "1.4.2")
    assert pushed.digest == digest
    configuration = json.loads(images.blob("team/jobs", manifest["config"]["digest"]))
    assert configuration["config"]["User"] == "185"
    assert len(manifest["layers"]) == len(configuration["rootfs"]["diff_ids"])
    with tarfile.open(file) as archive:
        written = json.load(archive.extractfile("manifest.json") or pytest.fail("no manifest"))
        layers = [archive.extractfile(layer) or pytest.fail(layer) for layer in written[0]["Layers"]]
        assert configuration["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(layer.read()).hexdigest()}" for layer in layers]
    # The last layer with files is the apps', small enough to be read back whole.
    smallest = min(manifest["layers"], key=lambda layer: int(layer["size"]))
    assert len(images.blob("team/jobs", smallest["digest"])) == smallest["size"]


def test_a_registry_that_does_not_answer_is_reported_with_what_it_said(tmp_path: Path) -> None:
    apps = (package(tmp_path, "from my_team.rules import LIMIT"),)
    with pytest.raises(ImageNotBuilt) as raised:
        built(Request("127.0.0.1:1/team/jobs:1.4.2", apps, assembled=True, push=True))
    assert raised.value.path == "push"
    assert "127.0.0.1:1" in str(raised.value.given)
