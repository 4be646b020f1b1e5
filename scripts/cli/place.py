"""``penstock place``: the nodes that Karpenter launches for pods, without a cluster or AWS."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from penstock.scripts.cli.environment_argument import add_environment_option
from penstock.scripts.cli.output import FORMATS, add_output_argument
from penstock.scripts.errors import UnreadableScenario, WrongUsage
from penstock.scripts.planning.planned_jobs import where
from penstock.scripts.planning.price_files import catalog_file
from penstock.scripts.render import place_table
from penstock.scripts.render.screen import screen_of
from penstock.sizing.catalog.allocatable import NodeSettings
from penstock.sizing.catalog.catalog import Catalog, shipped
from penstock.sizing.errors import PenstockError, Place, raise_all
from penstock.sizing.placement.decision import Decision
from penstock.sizing.placement.place import place
from penstock.sizing.placement.scenario import Scenario, locate, read
from penstock.sizing.placement.staged import place_staged

# A scenario with a hundred NodePools and groups takes about 200 kB.
MAX_BYTES = 50_000_000


class Nodes(NamedTuple):
    """An environment's nodes.

    Args:
        catalog: instance types and prices.
        settings: of the nodes.
        zones: with subnets; None: the region's a, b and c.
    """

    catalog: Catalog
    settings: NodeSettings
    zones: Sequence[str] | None = None


def nodes_of(environment: str | None, catalog: Path | None = None) -> Nodes:
    """An environment's nodes; Karpenter's own defaults if none is named, because a scenario contains everything else.

    Args:
        environment: its name or file.
        catalog: a snapshot instead of the shipped prices.

    Raises:
        WrongUsage: USE-001, for an environment without a cluster.
    """
    if environment is None:
        return Nodes(catalog_file(catalog) if catalog else shipped(), NodeSettings())
    location = where(environment, catalog)
    if location.cluster is None:
        need = "an environment with a cluster: network, eks and nodes"
        raise WrongUsage(given=f"environment {environment}", need=need, fix="omit it to use Karpenter's defaults")
    return Nodes(location.cluster.catalog, location.cluster.node_settings, location.cluster.zones)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    parser.add_argument(
        "scenarios", nargs="+", type=Path, metavar="SCENARIO", help="JSON file with a scenario, optionally under the key `scenario`"
    )
    add_environment_option(parser, None, more="supplies node settings, zones and prices", default_text="Karpenter's own")
    parser.add_argument(
        "--catalog", type=Path, metavar="FILE", help="snapshot written by `penstock catalog refresh`, for its types and spot prices"
    )
    add_output_argument(parser, FORMATS)
    parser.add_argument("--explain", action="store_true", help="include the reasons for unschedulable pods in JSON and YAML")


def run(arguments: argparse.Namespace) -> int:
    """Prints the decisions.

    Returns:
        0, even with unschedulable pods.

    Raises:
        PenstockError: USE-010, SIZ-020 to SIZ-025: all the faults of all the files at once.
    """
    nodes = nodes_of(arguments.environment, arguments.catalog)
    decisions = _decisions(arguments.scenarios, nodes)
    if arguments.output == "table":
        screen = screen_of(sys.stdout, os.environ)
        parts = [place_table.render(_title(path, scenario), decision, screen) for path, scenario, decision in decisions]
        sys.stdout.write("\n".join(parts))
        return 0
    documents = [decision.as_json(explain=arguments.explain) for _, _, decision in decisions]
    sys.stdout.write(_as_text(documents[0] if len(documents) == 1 else documents, arguments.output))
    return 0


def decide(scenario: Scenario, nodes: Nodes) -> Decision:
    """The decision on a scenario: staged if pods arrive in it, else in one batch."""
    decision = place_staged if scenario.arrivals else place
    return decision(scenario, nodes.catalog, nodes.settings, nodes.zones)


def read_file(path: Path) -> Scenario:
    """The scenario of a file.

    Raises:
        PenstockError: USE-010, SIZ-020 to SIZ-024, each with the file.
    """
    try:
        return read(_json(path))
    except PenstockError as error:
        raise locate(error, str(path)) from None


def _decisions(paths: Sequence[Path], nodes: Nodes) -> list[tuple[Path, Scenario, Decision]]:
    decisions: list[tuple[Path, Scenario, Decision]] = []
    faults: list[PenstockError] = []
    for path in paths:
        try:
            scenario = read_file(path)
            decisions.append((path, scenario, decide(scenario, nodes)))
        except PenstockError as error:
            faults += locate(error, str(path)).errors
    raise_all(faults)
    return decisions


def _json(path: Path) -> Any:
    """A file as plain data.

    Raises:
        UnreadableScenario: USE-010.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as fault:
        raise _unreadable(path, given=fault.strerror or str(fault), need="a readable JSON file") from None
    except ValueError as fault:
        raise _unreadable(path, given=str(fault), need="a file path") from None
    if len(content) > MAX_BYTES:
        raise _unreadable(path, given="a larger file", need=f"at most {MAX_BYTES // 1_000_000} MB")
    try:
        return json.loads(content.decode("utf-8-sig"), object_pairs_hook=_unique, parse_constant=_no_constant)
    except json.JSONDecodeError as fault:
        raise UnreadableScenario(
            at=Place(file=str(path), line=fault.lineno, column=fault.colno), given=fault.msg, need="JSON", fix="correct the JSON"
        ) from None
    except UnicodeDecodeError:
        raise _unreadable(path, given="bytes that are not valid UTF-8", need="UTF-8 encoded JSON") from None
    except RecursionError:
        raise _unreadable(path, given="excessive nesting", need="a scenario") from None
    except ValueError as fault:
        raise _unreadable(path, given=str(fault), need="JSON with unique keys, without NaN and Infinity") from None


def _unreadable(path: Path, given: str, need: str) -> UnreadableScenario:
    return UnreadableScenario(at=Place(file=str(path)), given=given, need=need, fix="see docs/placement.md")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)!r} is duplicated in an object")
    return mapping


def _no_constant(text: str) -> NoReturn:
    raise ValueError(text)


def _title(path: Path, scenario: Scenario) -> str:
    return scenario.name or path.stem


def _as_text(document: dict[str, Any] | list[dict[str, Any]], output: str) -> str:
    if output == "json":
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    import yaml  # only here, so that a table needs no YAML writer

    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120)
