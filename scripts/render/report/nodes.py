"""The nodes drawn to scale: a node's width is its CPU, its height its memory, and so are those of the pods in it.

A pod uses both, so pods are placed corner to corner: each begins where the previous one ends in both dimensions. The reserve of the
system and the DaemonSets lies along the left and the lower edge. The upper right rectangle is what another pod could request; there is
none if either CPU or memory is used up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from penstock.scripts.render.node_shares import KIND_NAMES, Kind, Part, Shares, counted, pods_text, same_nodes, shares
from penstock.scripts.render.report.markup import Markup, element, joined
from penstock.scripts.render.report.tables import Column, bullets, table
from penstock.sizing.planned_nodes import NodeGroup, NodesPlan, PlacedPods

# Sizes in pixels of a drawing that is shown at full width.
WIDEST = 340.0
TALLEST = 230.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 58.0, 12.0, 14.0, 24.0
_LEAST_WIDTH = 170.0
_CARD_STEP = 6.0
_LETTER = 6.6
_LINE = 15.0

_COLUMNS = (
    Column("nodes"),
    Column("pool"),
    Column("capacity type", whole=True),
    Column("types", numeric=True),
    Column("pods per node", wide=True),
    Column("cpu", numeric=True),
    Column("cpu used", numeric=True),
    Column("cpu free", numeric=True),
    Column("memory", numeric=True),
    Column("memory used", numeric=True),
    Column("memory free", numeric=True),
    Column("USD/h on-demand", numeric=True),
)


class Scale(NamedTuple):
    """Pixels of one millicore and of one MiB; the same for all nodes of a page."""

    per_millicore: float
    per_mib: float


class _Box(NamedTuple):
    """A rectangle of cpu (across) and memory (up), in millicores and MiB from the node's lower left corner."""

    cpu: int
    memory: int
    wide: int
    high: int


def section(nodes: NodesPlan) -> Markup:
    """The nodes of the plan for both arrival orders, drawn and in numbers."""
    scale = scale_of(nodes)
    rest = (
        element("p", "The same nodes are created if the driver starts first and executors follow as Spark requests them.", class_="aside")
        if same_nodes(nodes.one_batch, nodes.staged)
        else joined(
            [
                element("h3", f"The driver first, executors as Spark requests them: {counted(nodes.staged.nodes, 'node')}"),
                _placed(nodes.staged, scale, "Nodes, the driver first"),
            ]
        )
    )
    return joined(
        [
            element("p", _how_to_read(), class_="aside"),
            _legend(nodes),
            element("h3", f"All pods at once: {counted(nodes.one_batch.nodes, 'node')}"),
            _placed(nodes.one_batch, scale, "Nodes, all pods at once"),
            rest,
        ]
    )


def scale_of(nodes: NodesPlan) -> Scale:
    """The scale at which the largest node fits."""
    examples = [group.example for group in (*nodes.one_batch.groups, *nodes.staged.groups) if group.example is not None]
    most_cpu = max((example.vcpu * 1000 for example in examples), default=1000)
    most_memory = max((example.memory_mib for example in examples), default=1024)
    return Scale(WIDEST / most_cpu, TALLEST / most_memory)


def drawing(group: NodeGroup, scale: Scale) -> Markup:
    """One node of a group as SVG; nothing if no instance type can be launched."""
    resources = shares(group)
    if resources is None:
        return Markup()
    cpu, memory = resources
    behind = min(group.count - 1, 2)
    wide, high = cpu.capacity * scale.per_millicore, memory.capacity * scale.per_mib
    left, top = _LEFT, _TOP + behind * _CARD_STEP
    width = max(left + wide + _RIGHT + behind * _CARD_STEP, _LEAST_WIDTH)
    height = top + high + _BOTTOM
    parts = [
        *(_card(left + step * _CARD_STEP, top - step * _CARD_STEP, wide, high) for step in range(behind, -1, -1)),
        *(_rectangle(kind, name, box, (left, top + high), scale, resources) for kind, name, box in _boxes(cpu, memory)),
        *_axes(cpu, memory, left, top, wide, high),
    ]
    label = f"{_like(group)}: cpu {cpu.used_percent} % used, memory {memory.used_percent} % used"
    size = f"0 0 {width:.0f} {height:.0f}"
    return element("svg", *parts, viewBox=size, width=f"{width:.0f}", height=f"{height:.0f}", role="img", aria_label=label, class_="node")


def _placed(placed: PlacedPods, scale: Scale, caption: str) -> Markup:
    missing = [
        f"{counted(count, pod)} without a node{': ' if pod in placed.reasons else ''}{placed.reasons.get(pod, '')}"
        for pod, count in placed.unschedulable.items()
    ]
    figures = element("div", *(_figure(group, scale) for group in placed.groups), class_="nodes")
    rows = [_row(group) for group in placed.groups]
    return joined([bullets(missing, class_="bad"), *([figures, table(_COLUMNS, rows, caption=caption)] if rows else [])])


def _figure(group: NodeGroup, scale: Scale) -> Markup:
    about = [f"pool {group.node_pool}", group.capacity_type, counted(len(group.launch_types), "type")]
    if group.at_s is not None:
        about.append(f"from {group.at_s:,.0f} s on")
    lines = [element("strong", _like(group)), ", ".join(part for part in about if part), *pods_text(group.pods)]
    if group.error:
        lines.append(element("span", f"can't be launched: {group.error}", class_="bad"))
    return element("figure", drawing(group, scale), element("figcaption", *(element("span", line) for line in lines)))


def _like(group: NodeGroup) -> str:
    return counted(group.count, "node") + (f" like {group.example.instance_type}" if group.example else "")


def _row(group: NodeGroup) -> list[str]:
    resources, example = shares(group), group.example
    start = [_like(group), group.node_pool, group.capacity_type or "-", f"{len(group.launch_types):,}", "; ".join(pods_text(group.pods))]
    if resources is None or example is None:
        return [*start, *["-"] * 7]
    numbers = [
        text
        for resource in resources
        for text in (resource.text(resource.capacity), f"{resource.used_percent} %", resource.text(resource.free))
    ]
    price = example.on_demand_usd_per_h
    return [*start, *numbers, "unknown" if price is None else f"{price:,.4f}"]


def _boxes(cpu: Shares, memory: Shares) -> Iterator[tuple[Kind, str, _Box]]:
    """The rectangles of a node, those of the overheads as two strips that meet in the corner."""
    at_cpu = at_memory = 0
    for across, up in zip(cpu.parts, memory.parts, strict=True):
        wide, high = max(0, across.amount), max(0, up.amount)
        if across.kind in ("reserve", "daemonSets"):
            yield across.kind, across.name, _Box(at_cpu, at_memory, wide, memory.capacity - at_memory)
            yield across.kind, across.name, _Box(at_cpu + wide, at_memory, cpu.capacity - at_cpu - wide, high)
        else:
            yield across.kind, across.name, _Box(at_cpu, at_memory, wide, high)
        at_cpu, at_memory = at_cpu + wide, at_memory + high


def _rectangle(kind: Kind, name: str, box: _Box, corner: tuple[float, float], scale: Scale, resources: tuple[Shares, Shares]) -> Markup:
    cpu, memory = resources
    wide, high = box.wide * scale.per_millicore, box.high * scale.per_mib
    x, y = corner[0] + box.cpu * scale.per_millicore, corner[1] - box.memory * scale.per_mib - high
    overhead = kind in ("reserve", "daemonSets")
    amounts = (cpu.amount(kind), memory.amount(kind)) if overhead else (box.wide, box.high)
    texts = [cpu.text(amounts[0]), memory.text(amounts[1])]
    drawn = element("rect", x=x, y=y, width=wide, height=high, class_=f"part {_css(kind)}")
    labels = [] if overhead else _label(name, texts, x, y, wide, high)
    return element("g", element("title", f"{name}: {', '.join(texts)}"), drawn, *labels, class_=f"on-{_css(kind)}")


def _label(name: str, texts: Sequence[str], x: float, y: float, wide: float, high: float) -> list[Markup]:
    """The name and the amounts, if they fit into the rectangle."""
    for lines in ([name, *texts], [name, ", ".join(texts)], [name]):
        if max(map(len, lines)) * _LETTER + 8 <= wide and len(lines) * _LINE + 4 <= high:
            first = y + high / 2 - (len(lines) - 1) * _LINE / 2 + 4
            return [element("text", line, x=x + wide / 2, y=first + at * _LINE, text_anchor="middle") for at, line in enumerate(lines)]
    return []


def _card(x: float, y: float, wide: float, high: float) -> Markup:
    return element("rect", x=x, y=y, width=wide, height=high, class_="card")


def _axes(cpu: Shares, memory: Shares, left: float, top: float, wide: float, high: float) -> Iterator[Markup]:
    bottom = top + high
    yield element("rect", x=left, y=top, width=wide, height=high, class_="frame")
    yield element("text", memory.text(memory.capacity), x=left - 6, y=top + 9, text_anchor="end", class_="axis")
    anchor, x = ("end", left + wide) if wide > 60 else ("start", left)
    yield element("text", cpu.text(cpu.capacity), x=x, y=bottom + 16, text_anchor=anchor, class_="axis")


def _legend(nodes: NodesPlan) -> Markup:
    groups = [*nodes.one_batch.groups, *nodes.staged.groups]
    drawn: list[Part] = [part for group in groups for resource in shares(group) or () for part in resource.parts]
    kinds = [kind for kind in KIND_NAMES if any(part.kind == kind for part in drawn)]
    keys = [
        element("li", element("svg", element("rect", width=14, height=14, class_=f"part {_css(kind)}"), **_KEY), KIND_NAMES[kind])
        for kind in kinds
    ]
    return element("ul", *keys, class_="legend") if keys else Markup()


_KEY: dict[str, str] = {"viewBox": "0 0 14 14", "width": "14", "height": "14", "aria_hidden": "true"}


def _css(kind: Kind) -> str:
    return "daemon-sets" if kind == "daemonSets" else kind


def _how_to_read() -> str:
    return (
        "All nodes are drawn to the same scale: width is CPU, height is memory. Each pod uses both, so pods are drawn corner to corner. "
        "The dashed rectangle is free capacity. Each node is drawn as the cheapest instance type that may be launched."
    )
