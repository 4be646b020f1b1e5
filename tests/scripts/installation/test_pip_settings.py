"""What uv is told of pip's configuration."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from penstock.scripts.installation import pip_settings

LISTING = """\
:env:.index-url='https://three.example/simple'
:env:.disable-pip-version-check='1'
global.cert='/etc/ca.pem'
global.index-url='https://one.example/simple'
global.trusted-host='a.example\\nhttps://b.example:8443'
install.index-url='https://two.example/simple'
install.find-links='/a\\n/b'
"""


def test_settings_are_read_by_pips_precedence() -> None:
    settings = pip_settings.read(LISTING)
    assert settings["index-url"] == "https://three.example/simple"
    assert settings["cert"] == "/etc/ca.pem"


def test_uv_gets_them_in_its_own_variables() -> None:
    assert pip_settings.variables(pip_settings.read(LISTING), {}) == {
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_DEFAULT_INDEX": "https://three.example/simple",
        "UV_FIND_LINKS": "/a,/b",
        "UV_INSECURE_HOST": "a.example b.example:8443",
        "SSL_CERT_FILE": "/etc/ca.pem",
    }


def test_uvs_own_variables_go_before_pips_settings() -> None:
    variables = pip_settings.variables({"index-url": "https://pip.example", "no-index": "true"}, {"UV_DEFAULT_INDEX": "https://uv.example"})
    assert variables == {"UV_INDEX_STRATEGY": "unsafe-best-match", "UV_NO_INDEX": "1"}


def test_values_that_uv_does_not_know_are_left_out() -> None:
    settings = {"keyring-provider": "import", "timeout": "1.5", "default-timeout": "60"}
    assert pip_settings.variables(settings, {}) == {"UV_INDEX_STRATEGY": "unsafe-best-match", "UV_HTTP_TIMEOUT": "60"}


def test_a_real_pip_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "pip.conf"
    file.write_text("[global]\nextra-index-url =\n    https://a.example/simple\n    https://b.example/simple\n")
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(file))
    variables = pip_settings.variables(pip_settings.listed(sys.executable), {})
    assert variables["UV_INDEX"] == "https://a.example/simple https://b.example/simple"


def test_a_python_without_pip_has_no_settings() -> None:
    assert pip_settings.listed("/nowhere/python") == {}
