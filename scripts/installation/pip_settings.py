"""The settings of pip that uv needs to find the same packages: uv reads neither pip.conf nor PIP_... variables.

`scripts/setup` runs this file before there is more than a bare Python, hence the standard library alone. What it prints is for the shell's
eval and is written nowhere: an index's address may hold a password.
"""

from __future__ import annotations

import ast
import os
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

# A setting of pip -> the variable of uv, and what stands between several values. Source: uv's reference, "Environment variables".
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
# What pip takes first comes last: a later one replaces an earlier one. Source: pip's documentation, "Configuration", "Precedence".
_SECTIONS = ("global", "install", ":env:")
_KEYRINGS = ("disabled", "subprocess")
# The first version of uv that is taken; a test holds scripts/setup to it.
UV_LEAST = (0, 8)


def read(listing: str) -> dict[str, str]:
    """The settings in what ``pip config list`` prints.

    Args:
        listing: lines ``section.name='value'``, the values as Python's literals.

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
    """The variables that make uv look where pip looks.

    Args:
        settings: of pip, by name.
        environment: the variables that are set: uv's own go before pip's settings.

    Returns:
        Variable -> value.
    """
    # Hashes hold what comes, so that an index that has a package may be any of them, as for pip.
    result = {"UV_INDEX_STRATEGY": "unsafe-best-match"}
    for name, (variable, between) in _VARIABLES.items():
        value = (between or " ").join(settings.get(name, "").split())
        if value and _fits(variable, value):
            result[variable] = _hosts(value.split()) if name == "trusted-host" else value
    if settings.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        result["UV_NO_INDEX"] = "1"
    return {variable: value for variable, value in result.items() if not environment.get(variable)}


def _fits(variable: str, value: str) -> bool:
    """Whether uv knows such a value: its keyring is a program, and its time limit a whole number of seconds."""
    if variable == "UV_KEYRING_PROVIDER":
        return value in _KEYRINGS
    return variable != "UV_HTTP_TIMEOUT" or value.isdigit()


def _hosts(named: Iterable[str]) -> str:
    """pip takes hosts with a scheme as well."""
    return " ".join(urlsplit(host).netloc if "://" in host else host for host in named)


def listed(python: str) -> dict[str, str]:
    """The settings of the pip of a Python; none where it can't say what it is configured for.

    Args:
        python: the Python's path.
    """
    # -I keeps Python from PYTHON... variables, not pip from PIP_... ones.
    return read(said([python, "-I", "-m", "pip", "--disable-pip-version-check", "config", "list"]))


def said(command: list[str]) -> str:
    """What a command prints; nothing where it can't be started or takes long."""
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
