"""``python -m penstock.scripts.dev.error_reference > docs/errors.md``: the page of all the error codes; a test compares the two."""

from __future__ import annotations

from penstock.scripts.error_classes import error_classes
from penstock.sizing.errors import PenstockError

_PACKAGES = {
    "sizing": "Conflicting or infeasible targets.",
    "jobs": "Job specs, the app module and running jobs.",
    "infra": "Environments, stacks and manifests.",
    "scripts": "The command line, the tools on this machine and external systems.",
    "testing": "Tests of a team's jobs.",
}
_EXIT_CODES = {
    1: "a check failed",
    2: "invalid document or usage",
    3: "infeasible plan",
    4: "a tool, file or credential is missing on this machine",
    5: "a run or an external system failed",
}


def errors() -> dict[str, list[type[PenstockError]]]:
    """Package -> its error classes, see `error_classes`."""
    return {package: list(error_classes(f"penstock.{package}")) for package in _PACKAGES}


def cause(kind: type[PenstockError]) -> str:
    """The class's own docstring in one line; empty if it has none."""
    return " ".join((kind.__dict__.get("__doc__") or "").split())


def rendered() -> str:
    """The page, in Markdown."""
    by_package = errors()
    codes = [f"- {code}: {what}" for code, what in _EXIT_CODES.items()]
    sections = [line for package, kinds in by_package.items() if kinds for line in _section(package, kinds)]
    head = [
        "# Errors",
        "",
        "<!-- Written by `python -m penstock.scripts.dev.error_reference > docs/errors.md`; a test fails where it is out of date. -->",
        "",
        "Every error has a stable code and states what is wrong, where, what was given, what is needed and how to fix it.",
        "All errors of a document are reported together. With `-o json` they are `{schemaVersion, errors: [...]}` on standard output.",
        "The exit code is that of the most severe error:",
        "",
        *codes,
    ]
    return "\n".join([*head, *sections]) + "\n"


def _section(package: str, kinds: list[type[PenstockError]]) -> list[str]:
    rows = [f"| {kind.code} | {kind.title} | {cause(kind)} | {kind.exit_code} |" for kind in kinds]
    return ["", f"## {package}", "", _PACKAGES[package], "", "| code | error | cause | exit |", "|---|---|---|---|", *rows]


if __name__ == "__main__":
    print(rendered(), end="")
