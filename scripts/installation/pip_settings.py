"""The settings of pip that uv needs to find the same packages: uv reads neither pip.conf nor PIP_... variables.

`scripts/setup` runs this file with a bare Python, hence the standard library alone. Its output is for the shell's eval and is written
nowhere: an index's URL may contain a password.
"""

from __future__ import annotations

import ast
import os
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

# pip setting -> uv variable, and the separator of several values. Source: uv's reference, "Environment variables".
_VARIABLES = {
    "index-url": ("UV_DEFAULT_INDEX", ""),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "trusted-host": ("UV_INSECURE_HOST", " "),
    "cert": ("SSL_CERT_FILE", ""),
    "client-cert": ("SSL_CLIENT_CERT", ""),
    "proxy": ("ALL_PROXY", ""),
    "timeout": ("UV_HTTP_TIMEOUT", ""),
    "default-timeout": ("UV_HTTP_TIMEOUT", ""),
    "keyring-provider": ("UV_KEYRING_PROVIDER", ""),
}
# Ascending precedence: a later one replaces an earlier one. Source: pip's documentation, "Configuration", "Precedence".
_SECTIONS = ("global", "install", ":env:")
_KEYRINGS = ("disabled", "subprocess")
# The minimum version of uv; a test compares it with scripts/setup.
UV_LEAST = (0, 8)


def read(listing: str) -> dict[str, str]:
    """Parses the output of ``pip config list``.

    Args:
        listing: lines ``section.name='value'``, the values as Python literals.

    Returns:
        Name -> value, by pip's precedence.
    """
    settings: dict[str, dict[str, str]] = {section: {} for section in _SECTIONS}
    for line in listing.splitlines():
        key, is_setting, literal = line.partition("=")
        section, _, name = key.rpartition(".")
        if is_setting and section in settings:
            settings[section][name] = str(ast.literal_eval(literal))
    return {name: value for section in _SECTIONS for name, value in settings[section].items()}


def variables(settings: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that make uv use pip's indexes.

    Args:
        settings: of pip, by name.
        environment: the current variables: uv's own take precedence over pip's settings.

    Returns:
        Variable -> value.
    """
    # Hashes verify the packages, so any index that has one may be used, as with pip.
    result = {"UV_INDEX_STRATEGY": "unsafe-best-match"}
    for name, (variable, between) in _VARIABLES.items():
        value = (between or " ").join(settings.get(name, "").split())
        if value and _fits(variable, value):
            result[variable] = _hosts(value.split()) if name == "trusted-host" else value
    if settings.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        result["UV_NO_INDEX"] = "1"
    return {variable: value for variable, value in result.items() if not environment.get(variable)}


def _fits(variable: str, value: str) -> bool:
    """Whether uv supports such a value: its keyring is a program, and its timeout a whole number of seconds."""
    if variable == "UV_KEYRING_PROVIDER":
        return value in _KEYRINGS
    return variable != "UV_HTTP_TIMEOUT" or value.isdigit()


def _hosts(named: Iterable[str]) -> str:
    """pip also accepts hosts with a scheme."""
    return " ".join(urlsplit(host).netloc if "://" in host else host for host in named)


def listed(python: str) -> dict[str, str]:
    """The settings of a Python's pip; empty if it cannot list them.

    Args:
        python: the Python's path.
    """
    # -I makes Python ignore PYTHON... variables, but not pip PIP_... ones.
    return read(said([python, "-I", "-m", "pip", "--disable-pip-version-check", "config", "list"]))


def said(command: list[str]) -> str:
    """The output of a command; empty if it cannot be started or takes too long."""
    try:
        ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ran.stdout


def main() -> None:
    """Prints ``export`` lines for the shell."""
    for variable, value in variables(listed(sys.executable), os.environ).items():
        print(f"export {variable}={shlex.quote(value)}")


if __name__ == "__main__":
    main()
