"""Names of environments that share an account: none may be the beginning of another.

The pipeline's role of an environment may change roles whose names begin with the environment's, `penstock-prod-*`: those of an environment
`prod-eu` do, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from penstock.infra.environment import Environment
from penstock.infra.environment_file import file_of, names
from penstock.infra.errors import NamesBeginAlike


def refuse_beginnings(environment: Environment) -> None:
    """Compares the name with those of the environments beside the file, of the repository and of the shipped ones.

    Args:
        environment: the environment.

    Raises:
        NamesBeginAlike: INF-055.
    """
    mine = environment.name
    for name, account, file in _others(environment):
        shorter, longer = sorted((mine, name), key=len)
        if account == environment.spec.account and longer.startswith(f"{shorter}-"):
            need = f"no environment of one account whose name begins with that of another and a hyphen; {file} is {name}"
            fault = NamesBeginAlike(given=mine, need=need, fix="rename one that is not deployed yet, or use an account each")
            raise environment.locate(fault, "metadata", "name")


def _others(environment: Environment) -> Iterable[tuple[str, str, Path]]:
    """Name, account and file of each; files that are no environments, or can't be read, are left out."""
    own = Path(environment.document.file).resolve() if environment.document is not None else None
    beside = own.parent.glob("*.yaml") if own is not None else ()
    for file in dict.fromkeys(path.resolve() for path in (*beside, *map(file_of, names()))):
        if file != own and (data := _data(file)):
            yield data["name"], data["account"], file


def _data(file: Path) -> dict[str, str]:
    try:
        data: Any = yaml.safe_load(file.read_text(encoding="utf-8"))
        return {"name": str(data["metadata"]["name"]), "account": str(data["spec"]["account"])} if data["kind"] == "Environment" else {}
    except (OSError, ValueError, yaml.YAMLError, LookupError, TypeError):
        return {}
