"""``penstock place``: the nodes that Karpenter launches for pods, without a cluster or AWS."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from penstock.scripts.cli.environment_argument import add_environment_option
from penstock.scripts.cli.output import FORMATS, add_output_argument
from penstock.scripts.errors import WrongUsage
from penstock.scripts.planning.kubernetes_object import KubernetesObject
from penstock.scripts.planning.kubernetes_scenario import scenario_of
from penstock.scripts.planning.planned_jobs import where
from penstock.scripts.planning.price_files import catalog_file
from penstock.scripts.planning.scenario_files import STDIN, name_of, read_file
from penstock.scripts.render import place_table
from penstock.scripts.render.screen import screen_of
from penstock.sizing.catalog.allocatable import NodeSettings
from penstock.sizing.catalog.catalog import Catalog, shipped
from penstock.sizing.errors import PenstockError, raise_all
from penstock.sizing.placement.decision import Decision
from penstock.sizing.placement.place import place
from penstock.sizing.placement.scenario import Scenario, locate
from penstock.sizing.placement.staged import place_staged


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
        "scenarios",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="YAML or JSON: a scenario, or Kubernetes objects (those of all files are placed together); - for the standard input",
    )
    add_environment_option(parser, None, more="supplies node settings, zones and prices", default_text="Karpenter's own")
    parser.add_argument(
        "--catalog", type=Path, metavar="FILE", help="snapshot written by `penstock catalog refresh`, for its types and spot prices"
    )
    parser.add_argument(
        "--spot-ratio",
        type=_ratio,
        metavar="SHARE",
        help="for Kubernetes objects: each spot price is this share of the on-demand price (default: the catalog's spot prices)",
    )
    add_output_argument(parser, FORMATS)
    parser.add_argument("--explain", action="store_true", help="include the reasons for unschedulable pods in JSON and YAML")


def run(arguments: argparse.Namespace) -> int:
    """Prints the decisions.

    Returns:
        0, even with unschedulable pods.

    Raises:
        PenstockError: USE-001, USE-010, SPEC-002, SPEC-003, SPEC-011, SIZ-020 to SIZ-025: all the faults of all the files at once.
    """
    decisions = _decisions(arguments.scenarios, nodes_of(arguments.environment, arguments.catalog), arguments.spot_ratio)
    if arguments.output == "table":
        screen = screen_of(sys.stdout, os.environ)
        parts = [place_table.render(title, decision, screen) for title, decision in decisions]
        sys.stdout.write("\n".join(parts))
        return 0
    documents = [decision.as_json(explain=arguments.explain) for _, decision in decisions]
    sys.stdout.write(_as_text(documents[0] if len(documents) == 1 else documents, arguments.output))
    return 0


def decide(scenario: Scenario, nodes: Nodes) -> Decision:
    """The decision on a scenario: staged if pods arrive in it, else in one batch."""
    decision = place_staged if scenario.arrivals else place
    return decision(scenario, nodes.catalog, nodes.settings, nodes.zones)


def _decisions(paths: Sequence[Path], nodes: Nodes, spot_ratio: float | None) -> list[tuple[str, Decision]]:
    """The decisions with their titles: one for each scenario, and one for all Kubernetes objects together."""
    decisions: list[tuple[str, Decision]] = []
    faults: list[PenstockError] = []
    objects: list[KubernetesObject] = []
    of_objects: list[Path] = []
    for path in paths:
        try:
            content = read_file(path)
            if isinstance(content, Scenario):
                decisions.append((content.name or _stem(path), decide(content, nodes)))
            else:
                objects += content
                of_objects.append(path)
        except PenstockError as error:
            faults += locate(error, name_of(path)).errors
    if of_objects and not faults:
        decisions.append((_stem(of_objects[0]) if len(of_objects) == 1 else "manifests", _of_objects(objects, nodes, spot_ratio)))
    elif spot_ratio is not None and not faults:
        need = "--spot-ratio only with Kubernetes objects; a scenario has a spotRatio of its own"
        raise WrongUsage(given=f"--spot-ratio {spot_ratio:g}", need=need, fix="set spotRatio in the scenario")
    raise_all(faults)
    return decisions


def _of_objects(objects: Sequence[KubernetesObject], nodes: Nodes, spot_ratio: float | None) -> Decision:
    made = scenario_of(objects, nodes.settings, [instance.name for instance in nodes.catalog.types], spot_ratio)
    for note in made.notes:
        sys.stderr.write(f"{note}\n")
    return decide(made.scenario, nodes._replace(settings=made.settings))


def _stem(path: Path) -> str:
    return "stdin" if path == STDIN else path.stem


def _ratio(text: str) -> float:
    """A spot price as a share of the on-demand price, as an argument."""
    try:
        ratio = float(text)
    except ValueError:
        ratio = 0.0
    if not 0 < ratio <= 10:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0 and up to 10")
    return ratio


def _as_text(document: dict[str, Any] | list[dict[str, Any]], output: str) -> str:
    if output == "json":
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    import yaml  # only here, so that a table needs no YAML writer

    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120)
