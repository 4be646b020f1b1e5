"""`penstock schema`: what an editor takes."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import yaml
from jsonschema import Draft202012Validator

from tests.scripts.cli.called import penstock

SPEC = """\
apiVersion: penstock/v1
kind: StreamingJob
metadata: {name: clicks}
spec: {app: clicks_app, parallelism: 2, executor: {slots: 2, memory: 2g}}
"""


def of_url(url: str) -> Path:
    """What an editor opens."""
    parts = urlsplit(url)
    assert (parts.scheme, parts.netloc) == ("file", "")
    return Path(url2pathname(parts.path))


def test_the_schema_is_printed_as_it_is_installed_and_holds_a_spec(tmp_path: Path) -> None:
    printed = penstock("schema", cwd=tmp_path)
    assert (printed.returncode, printed.stderr) == (0, "")
    url = penstock("schema", "--url", cwd=tmp_path).stdout.strip()
    assert of_url(url).read_text(encoding="utf-8") == printed.stdout
    validator = Draft202012Validator(json.loads(printed.stdout))
    assert validator.is_valid(yaml.safe_load(SPEC))
    assert not validator.is_valid(yaml.safe_load(SPEC.replace("parallelism", "paralelism")))


def test_the_modeline_is_a_comment_with_that_url_and_the_spec_below_it_is_accepted(tmp_path: Path) -> None:
    modeline = penstock("schema", "--modeline", cwd=tmp_path).stdout
    url = penstock("schema", "--url", cwd=tmp_path).stdout
    assert modeline == f"# yaml-language-server: $schema={url}"
    spec = tmp_path / "clicks.yaml"
    spec.write_text(modeline + SPEC, encoding="utf-8")
    (tmp_path / "clicks_app.py").touch()
    assert penstock("size", str(spec)).returncode == 0
