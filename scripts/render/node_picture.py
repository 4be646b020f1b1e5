"""The nodes of a plan as a picture for the terminal: CPU and memory of each node as bars to scale, used and free."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import NamedTuple, TextIO

from penstock.scripts.render.node_shares import KIND_NAMES, Kind, Part, Shares, cores_text, counted, gib_text, pods_text, same_nodes, shares
from penstock.scripts.render.screen import PROSE_WIDTH, screen_of
from penstock.sizing.planned_nodes import NodeGroup, NodesPlan, PlacedPods

NARROWEST = 60
_LABEL = 12
_NUMBERS = 31
_UNBROKEN = "\N{NO-BREAK SPACE}"
# Source: ECMA-48, SGR; the 16 colours that are readable in every terminal theme.
_COLOURS: dict[Kind, str] = {"reserve": "90", "daemonSets": "36", "driver": "35", "executor": "34", "pod": "33", "free": "2"}
_LETTERS: dict[Kind, str] = {"driver": "D", "executor": "E", "pod": "P"}


class _Glyphs(NamedTuple):
    reserve: str
    daemon_sets: str
    free: str
    fill: str
    first: str
    last: str


_BLOCKS = _Glyphs(reserve="▓", daemon_sets="▒", free="·", fill="█", first="█", last="▊")
_ASCII = _Glyphs(reserve="#", daemon_sets="+", free=".", fill="=", first="[", last="]")


class _Style(NamedTuple):
    width: int
    colour: bool
    glyphs: _Glyphs

    @property
    def bar(self) -> int:
        return self.width - _LABEL - _NUMBERS


def render(nodes: NodesPlan, width: int = PROSE_WIDTH, colour: bool = False, unicode: bool = True) -> str:
    """The nodes as text.

    Args:
        nodes: the planned nodes.
        width: columns, `NARROWEST` or more; less counts as that.
        colour: whether to colour the bars; they are readable without.
        unicode: whether block characters may be used; otherwise ASCII.
    """
    style = _Style(max(width, NARROWEST), colour, _BLOCKS if unicode else _ASCII)
    rows = [*_placed("All pods at once", nodes, nodes.one_batch, style), ""]
    if same_nodes(nodes.one_batch, nodes.staged):
        rows += [*_wrapped(f"The driver first, executors as Spark requests them: the same nodes{_until(nodes.staged)}.", 0, style), ""]
    else:
        rows += [*_placed("The driver first, executors as Spark requests them", nodes, nodes.staged, style), ""]
    return "\n".join([*rows, *_legend(nodes, style)]) + "\n"


def for_stream(nodes: NodesPlan, stream: TextIO, environ: Mapping[str, str]) -> str:
    """The nodes in the form that a stream supports.

    Args:
        nodes: the planned nodes.
        stream: the target: colour only on a terminal, blocks if the encoding has them.
        environ: variables of the process: NO_COLOR and TERM.
    """
    screen = screen_of(stream, environ)
    return render(nodes, screen.prose, colour=screen.colour, unicode=has_blocks(stream.encoding))


def has_blocks(encoding: str | None) -> bool:
    """Whether an encoding has the block characters."""
    try:
        "".join(_BLOCKS).encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def cells(amounts: list[int], width: int) -> list[int]:
    """Splits a bar to scale.

    Args:
        amounts: each 0 or more, not all 0.
        width: of the bar.

    Returns:
        The width of each part; they add up to `width`, and each is less than one cell off.
    """
    total, before, passed, widths = sum(amounts), 0, 0, []
    for amount in amounts:
        passed += amount
        edge = (2 * passed * width + total) // (2 * total)
        widths.append(edge - before)
        before = edge
    return widths


def _placed(title: str, nodes: NodesPlan, placed: PlacedPods, style: _Style) -> Iterator[str]:
    where = f"{nodes.environment}, {nodes.region}, instance types of {nodes.catalog_date}"
    yield from _wrapped(f"{title}: {counted(placed.nodes, 'node')} ({where})", 0, style)
    for group in placed.groups:
        yield ""
        yield from _node(group, style)
    for pod, count in placed.unschedulable.items():
        yield ""
        reason = placed.reasons.get(pod, "")
        yield from _wrapped(f"{counted(count, pod)} without a node{': ' if reason else ''}{reason}", 2, style)


def _node(group: NodeGroup, style: _Style) -> Iterator[str]:
    resources = shares(group)
    if group.example is None or resources is None:
        pods = "; ".join(pods_text(group.pods))
        yield from _wrapped(f"{counted(group.count, 'node')} of pool {group.node_pool} with {pods}: {group.error or 'no type'}", 2, style)
        return
    yield from _wrapped(", ".join(_whole(item) for item in _facts(group, group.example.instance_type)), 2, style)
    for resource in resources:
        numbers = f"{resource.used_percent:>3} % used, {resource.text(resource.free)} free"
        yield f"    {resource.resource:<{_LABEL - 4}}{_bar(resource, style)}  {numbers}"
    if group.error:
        yield from _wrapped(f"can't be launched: {group.error}", _LABEL, style)
    yield from _wrapped("; ".join(_whole(item) for item in [*pods_text(group.pods), *_overheads(resources)]), _LABEL, style)


def _facts(group: NodeGroup, instance_type: str) -> Iterator[str]:
    yield f"{counted(group.count, 'node')} like {instance_type}"
    yield f"pool {group.node_pool}"
    if group.capacity_type:
        yield group.capacity_type
    yield counted(len(group.launch_types), "type")
    if group.example is not None and group.example.on_demand_usd_per_h is not None:
        yield f"{group.example.on_demand_usd_per_h:g} USD/h as on-demand"
    if group.at_s is not None:
        yield f"from {group.at_s:,.0f} s on"


def _overheads(resources: tuple[Shares, Shares]) -> Iterator[str]:
    cpu, memory = resources
    kinds: tuple[Kind, ...] = ("daemonSets", "reserve")
    for kind in kinds:
        yield f"{KIND_NAMES[kind]} {cores_text(cpu.amount(kind))}, {gib_text(memory.amount(kind))}"


def _bar(resource: Shares, style: _Style) -> str:
    parts = list(resource.parts)
    widths = cells([max(0, part.amount) for part in parts], style.bar)
    if any(width < 2 for part, width in zip(parts, widths, strict=True) if part.kind in _LETTERS):
        parts = list(_merged(resource))
        widths = cells([max(0, part.amount) for part in parts], style.bar)
    return "".join(_segment(part, width, style) for part, width in zip(parts, widths, strict=True))


def _merged(resource: Shares) -> Iterator[Part]:
    """The parts with the pods of a kind merged: there are too many to tell them apart."""
    for kind in KIND_NAMES:
        same = [part for part in resource.parts if part.kind == kind]
        if same:
            name = f"{_LETTERS[kind]} x{len(same)}" if kind in _LETTERS and len(same) > 1 else same[0].name
            yield Part(kind, name, sum(part.amount for part in same))


def _segment(part: Part, width: int, style: _Style) -> str:
    glyphs = style.glyphs
    plain: dict[Kind, str] = {"reserve": glyphs.reserve, "daemonSets": glyphs.daemon_sets, "free": glyphs.free}
    text = plain[part.kind] * width if part.kind in plain else _pod(part, width, glyphs)
    return f"\x1b[{_COLOURS[part.kind]}m{text}\x1b[0m" if style.colour and text else text


def _pod(part: Part, width: int, glyphs: _Glyphs) -> str:
    """A pod: its letter in the middle of a block that ends in a gap, so that adjacent pods are distinguishable."""
    letter = _LETTERS[part.kind]
    if width < 3:
        return (letter + glyphs.last)[:width]
    label = part.name if part.name.startswith(f"{letter} x") and len(part.name) <= width - 2 else letter
    left = (width - len(label)) // 2
    right = width - len(label) - left
    return glyphs.first + glyphs.fill * (left - 1) + label + glyphs.fill * (right - 1) + glyphs.last


def _legend(nodes: NodesPlan, style: _Style) -> list[str]:
    glyphs = style.glyphs
    groups = [*nodes.one_batch.groups, *nodes.staged.groups]
    kinds = [part.kind for group in groups for resource in shares(group) or () for part in resource.parts]
    signs: dict[Kind, str] = {"reserve": glyphs.reserve, "daemonSets": glyphs.daemon_sets, "free": glyphs.free}
    signs |= {kind: f"{glyphs.first}{letter}{glyphs.last}" for kind, letter in _LETTERS.items()}
    lines: list[list[Kind]] = []
    for kind in (kind for kind in KIND_NAMES if kind in kinds):
        if not lines or len(_entries([*lines[-1], kind], signs)) > style.width:
            lines.append([])
        lines[-1].append(kind)
    return [_entries(line, {kind: _coloured(sign, kind, style) for kind, sign in signs.items()}) for line in lines]


def _entries(kinds: list[Kind], signs: Mapping[Kind, str]) -> str:
    return "  " + "   ".join(f"{signs[kind]} {KIND_NAMES[kind]}" for kind in kinds)


def _coloured(text: str, kind: Kind, style: _Style) -> str:
    return f"\x1b[{_COLOURS[kind]}m{text}\x1b[0m" if style.colour else text


def _until(placed: PlacedPods) -> str:
    times = [group.at_s for group in placed.groups if group.at_s is not None]
    return f", the last asked for after {max(times):,.0f} s" if any(times) else ""


def _whole(item: str) -> str:
    """An item that `_wrapped` only breaks if it is too long for a line."""
    return item.replace(" ", _UNBROKEN)


def _wrapped(text: str, indent: int, style: _Style) -> list[str]:
    blanks = " " * indent
    lines = textwrap.wrap(text, style.width, initial_indent=blanks, subsequent_indent=blanks, break_on_hyphens=False)
    return [line.replace(_UNBROKEN, " ") for line in lines]
