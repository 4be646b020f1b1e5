"""Resolves environments: from a name or a path to the file, the defaults, and reading it.

An environment is selected by its name if it is in the folder ``environments`` of the repository that a command runs in, or shipped, and any
other by the path of its file. Commands that do not call AWS default to
`DEFAULT_ENVIRONMENT`, runs on this machine to `LOCAL_ENVIRONMENT`. Commands that call AWS have no default, since acting on the wrong
environment is expensive: see `named`.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import Any

from penstock.infra.broker_ca import broker_ca
from penstock.infra.environment import NAME_PATTERN, Environment
from penstock.infra.errors import ClusterOfAnother, NoEnvironment, UnknownEnvironment
from penstock.jobs.document import read

# The real folder, if the package is reached through a link: errors and findings name its files.
FOLDER = Path(__file__).resolve().parent / "environments"
# For commands that do not call AWS, where a forgotten name does no harm.
DEFAULT_ENVIRONMENT = "production"
LOCAL_ENVIRONMENT = "local"
# Of a team's repository, beside its cdktf.json.
REPOSITORY_FOLDER, _REPOSITORY_MARK = "environments", "cdktf.json"
ENVIRONMENT_VARIABLE = "PENSTOCK_ENVIRONMENT"


def names() -> list[str]:
    """The environments that can be selected by name, sorted."""
    return sorted({file.stem for folder in _folders() for file in folder.glob("*.yaml")})


def _folders() -> list[Path]:
    """Where environments have names: the repository's own, which come first, and the shipped ones."""
    here = Path.cwd()
    repository = next((folder for folder in (here, *here.parents) if (folder / _REPOSITORY_MARK).is_file()), None)
    own = repository / REPOSITORY_FOLDER if repository is not None else None
    return [own, FOLDER] if own is not None and own.is_dir() else [FOLDER]


def file_of(name_or_path: str | Path) -> Path:
    """The file of an environment.

    Args:
        name_or_path: a name, or the path of a YAML file.

    Raises:
        UnknownEnvironment: INF-001.
    """
    if re.fullmatch(NAME_PATTERN, str(name_or_path)) and not Path(name_or_path).is_file():
        files = [folder / f"{name_or_path}.yaml" for folder in _folders()]
        file = next((file for file in files if file.is_file()), None)
        if file is None:
            raise UnknownEnvironment(path=str(name_or_path), need=_one_of_them(), fix="name one of them, or write the file")
        return _shown(file)
    return Path(name_or_path)


def load(name_or_path: str | Path) -> Environment:
    """Reads an environment.

    Args:
        name_or_path: a name, or the path of a YAML file.

    Returns:
        The environment with its document. Paths of files in it are absolute.

    Raises:
        UnknownEnvironment: INF-001.
        PenstockError: SPEC-001 to SPEC-006 and SPEC-011, for faults of the document; INF-065, INF-066.
    """
    file = file_of(name_or_path)
    document = read(file)
    environment = _with_absolute_paths(file, document.parse(Environment)).of_document(document)
    _refuse_clusters_of_others(environment)
    broker_ca(environment)
    return environment


def _refuse_clusters_of_others(environment: Environment) -> None:
    spec = environment.spec
    arn = None if spec.kafka is None else spec.kafka.cluster_arn
    if arn is None:
        return
    region, account = arn.split(":")[3:5]
    if (region, account) != (spec.region, spec.account):
        need = f"a cluster in {spec.account}, {spec.region}, the environment's account and region; this one is in {account}, {region}"
        fix = "correct clusterArn, account or region; brokers of another account are reached with security: tls, mtls or sasl-scram"
        raise environment.locate(ClusterOfAnother(need=need, fix=fix), "spec", "kafka", "clusterArn")


def named(name: str | None = None, *, path: str = "ENV", fix: str = f"name it, or export {ENVIRONMENT_VARIABLE}") -> Environment:
    """The environment of a name, or of PENSTOCK_ENVIRONMENT if no name is given.

    Args:
        name: name or path; None or empty: the value of the variable.
        path: what the error calls the missing name.
        fix: fix of that error.

    Raises:
        NoEnvironment: INF-002, neither is set.
        PenstockError: as `load`.
    """
    name = name or os.environ.get(ENVIRONMENT_VARIABLE)
    if not name:
        raise NoEnvironment(path=path, need=_one_of_them(), fix=fix)
    return load(name)


def argument_of(environment: Environment) -> str:
    """What a command line takes for an environment, in errors and fixes that name a command: its name where that finds its file, else the
    file as it was given.

    Args:
        environment: read from a file, or built by a program, which has a name alone.
    """
    if environment.document is None:
        return environment.name
    file = Path(environment.document.file)
    named_files = (folder / f"{file.stem}.yaml" for folder in _folders())
    found = next((one for one in named_files if one.is_file()), None)
    return file.stem if found is not None and found.resolve() == file.resolve() else shlex.quote(str(file))


def _one_of_them() -> str:
    return f"one of {', '.join(names())}, or the path of an environment file"


def _shown(file: Path) -> Path:
    """The path of a file that has a name, relative to the current folder, as errors and findings show it."""
    here = Path.cwd()
    return file.relative_to(here) if file.is_relative_to(here) else file


def _with_absolute_paths(file: Path, environment: Environment) -> Environment:
    """Files are named relative to the environment's file."""
    spec = environment.spec

    def absolute(path: str) -> str:
        return str((file.parent / path).resolve())

    given = {"catalog": spec.catalog, "prices": spec.prices}
    ca_file = None if spec.kafka is None else spec.kafka.ca_file
    changes: dict[str, Any] = {field: absolute(path) for field, path in given.items() if path is not None}
    if spec.app_path:
        changes["app_path"] = [absolute(path) for path in spec.app_path]
    if spec.jobs:
        changes["jobs"] = [job.model_copy(update={"spec": absolute(job.spec)}) for job in spec.jobs]
    if spec.kafka is not None and ca_file is not None:
        changes["kafka"] = spec.kafka.model_copy(update={"ca_file": absolute(ca_file)})
    return environment.with_spec(**changes) if changes else environment
