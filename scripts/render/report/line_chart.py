"""A line chart as SVG: one curve over whole numbers, with levels for comparison and a mark on one number."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from penstock.scripts.render.report.markup import Markup, element, number

WIDTH, HEIGHT = 480.0, 300.0
LEFT, RIGHT, TOP, BOTTOM = 62.0, 14.0, 26.0, 46.0
_MOST_DOTS = 32


class Level(NamedTuple):
    """A horizontal line.

    Args:
        value: in the unit of the curve.
        label: next to it.
    """

    value: float
    label: str


class Chart(NamedTuple):
    """The content of a chart.

    Args:
        title: of the drawing, for screen readers.
        across: what the whole numbers count.
        up: what the curve shows, with its unit.
        points: by rising number; None: no value there.
        levels: for comparison with the curve.
        marked: the number with the vertical line.
        mark: its label.
        most: upper end of the vertical axis; values above are cut off.
        text: formats a value with its unit, for the points' hints.
        tick: formats a value of the vertical axis.
    """

    title: str
    across: str
    up: str
    points: Sequence[tuple[int, float | None]]
    levels: Sequence[Level]
    marked: int
    mark: str
    most: float
    text: Callable[[float], str]
    tick: Callable[[float], str]


class Axes(NamedTuple):
    """From values to the drawing's pixels.

    Args:
        last: right end of the horizontal axis; its left end is 0.
        most: upper end of the vertical axis; its lower end is 0.
    """

    last: float
    most: float

    def x(self, value: float) -> float:
        """Pixels from the left."""
        return LEFT + (WIDTH - LEFT - RIGHT) * value / self.last

    def y(self, value: float) -> float:
        """Pixels from the top."""
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / self.most


def axes_of(chart: Chart) -> Axes:
    """The axes of a chart: they begin at 0 and end at a tick."""
    step = tick_step(chart.most)
    return Axes(last=max(chart.marked, *(count for count, _ in chart.points), 1) + 0.5, most=math.ceil(chart.most / step - 1e-9) * step)


def tick_step(most: float, ticks: int = 5) -> float:
    """A round distance between ticks: 1, 2 or 5 times a power of ten, about `ticks` of them up to `most`."""
    raw = most / ticks
    power = 10.0 ** math.floor(math.log10(raw))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * (1 - 1e-9))


def draw(chart: Chart) -> Markup:
    """The chart as SVG."""
    axes = axes_of(chart)
    parts = [*_grid(chart, axes), *_levels(chart, axes), *_marked(chart, axes), *_curve(chart, axes), *_titles(chart)]
    size = f"0 0 {WIDTH:.0f} {HEIGHT:.0f}"
    return element("svg", *parts, viewBox=size, role="img", aria_label=chart.title, class_="chart")


def _grid(chart: Chart, axes: Axes) -> Iterator[Markup]:
    step = tick_step(chart.most)
    for at in range(round(axes.most / step) + 1):
        y = axes.y(at * step)
        yield element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_="grid" if at else "base")
        yield element("text", chart.tick(at * step), x=LEFT - 7, y=y + 4, text_anchor="end")
    across = max(1, round(tick_step(axes.last, 8)))
    for count in range(0, math.floor(axes.last) + 1, across):
        x = axes.x(count)
        yield element("line", x1=x, x2=x, y1=HEIGHT - BOTTOM, y2=HEIGHT - BOTTOM + 4, class_="base")
        yield element("text", f"{count:,}", x=x, y=HEIGHT - BOTTOM + 18, text_anchor="middle")


def _levels(chart: Chart, axes: Axes) -> Iterator[Markup]:
    """Each level with its label above the line at the right, or below if there is no room above."""
    shown = sorted((level for level in chart.levels if level.value <= axes.most), key=lambda level: -level.value)
    for at, level in enumerate(shown):
        y = axes.y(level.value)
        crowded = at > 0 and y - axes.y(shown[at - 1].value) < 17
        yield element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_="level")
        yield element("text", level.label, x=WIDTH - RIGHT, y=y + (14 if crowded else -5), text_anchor="end", class_="halo level-label")


def _marked(chart: Chart, axes: Axes) -> Iterator[Markup]:
    x = axes.x(chart.marked)
    yield element("line", x1=x, x2=x, y1=TOP, y2=HEIGHT - BOTTOM, class_="mark")
    anchor = "start" if x < WIDTH / 2 else "end"
    yield element("text", chart.mark, x=x + (5 if anchor == "start" else -5), y=TOP + 10, text_anchor=anchor, class_="halo mark-label")


def _curve(chart: Chart, axes: Axes) -> Iterator[Markup]:
    for run in runs(chart.points, axes.most):
        path = " ".join(f"{number(axes.x(at))},{number(axes.y(value))}" for at, value in run)
        yield element("polyline", points=path, class_="curve")
    inside = [(count, value) for count, value in chart.points if value is not None and value <= axes.most]
    for count, value in inside:
        if len(inside) <= _MOST_DOTS or count == chart.marked:
            hint = element("title", f"{chart.across} {count:,}: {chart.text(value)}")
            yield element("circle", hint, cx=axes.x(count), cy=axes.y(value), r=5 if count == chart.marked else 2.5, class_="dot")


def runs(points: Sequence[tuple[int, float | None]], most: float) -> list[list[tuple[float, float]]]:
    """The segments of the curve below `most`, each up to where it crosses it."""
    segments: list[list[tuple[float, float]]] = []
    known = [(count, value) for count, value in points if value is not None]
    for before, after in pairwise(known):
        segment = _cut(before, after, most)
        if not segment:
            continue
        if segments and segments[-1][-1] == segment[0]:
            segments[-1].append(segment[1])
        else:
            segments.append(segment)
    if len(known) == 1 and known[0][1] <= most:
        segments.append([known[0]])
    return segments


def _cut(before: tuple[float, float], after: tuple[float, float], most: float) -> list[tuple[float, float]]:
    """A straight segment up to the line `most`; empty if it lies above."""
    if before[1] > most and after[1] > most:
        return []
    if before[1] <= most and after[1] <= most:
        return [before, after]
    share = (most - before[1]) / (after[1] - before[1])
    crossing = (before[0] + (after[0] - before[0]) * share, most)
    return [crossing, after] if before[1] > most else [before, crossing]


def _titles(chart: Chart) -> Iterator[Markup]:
    yield element("text", chart.up, x=0, y=12, class_="title")
    yield element("text", chart.across, x=(LEFT + WIDTH - RIGHT) / 2, y=HEIGHT - 8, text_anchor="middle", class_="title")
