"""Draws results as bars: ``bars.py RESULTS.json OUT.svg``, by the Python of matplotlib."""

from __future__ import annotations

import io
import json
import statistics
import sys
from pathlib import Path
from typing import Any

import matplotlib  # type: ignore[import-not-found]

matplotlib.use("svg")
import matplotlib.pyplot as plt  # type: ignore[import-not-found]

# Distinct for people who see no red or green, and in print. Source: Okabe and Ito's palette.
_COLOURS = {"penstock": "#0072B2", "plain": "#E69F00", "plain_keeping": "#D55E00", "flink": "#CC79A7"}
_NAMES = {"penstock": "Penstock", "plain": "PySpark", "plain_keeping": "PySpark keeping\nbad records", "flink": "PyFlink SQL"}
_PAGE, _INK, _GREY = "#ffffff", "#1f2328", "#59636e"
_TITLE = "Events per CPU second after the start: median, lowest and highest round; each job has a scale of its own"
# Matplotlib writes colours into each element; a page that is dark has others.
_DARK = f"""<style>@media (prefers-color-scheme: dark) {{
    [style*="fill: {_PAGE}"] {{ fill: #0d1117 !important; }}
    [style*="fill: {_INK}"] {{ fill: #f0f6fc !important; }}
    [style*="stroke: {_INK}"] {{ stroke: #f0f6fc !important; }}
    [style*="fill: {_GREY}"] {{ fill: #9198a1 !important; }}
    [style*="stroke: {_GREY}"] {{ stroke: #9198a1 !important; }}
  }}</style>"""
_COLUMNS = 2
# Of the longest whisker, for the figure behind it.
_ROOM = 1.22


def main(results: str, into: str) -> None:
    """One panel a job, with a scale of its own, and one bar a contestant."""
    jobs = json.loads(Path(results).read_text(encoding="utf-8"))["measured"]
    # The same file for the same results.
    matplotlib.rcParams.update({"svg.hashsalt": "penstock", "font.family": "sans-serif", "font.size": 10, "svg.fonttype": "none"})
    matplotlib.rcParams.update({"text.color": _INK, "xtick.labelcolor": _INK, "ytick.labelcolor": _INK, "axes.titlecolor": _INK})
    matplotlib.rcParams.update({"figure.facecolor": _PAGE, "axes.facecolor": "none"})
    rows = -(-len(jobs) // _COLUMNS)
    figure, axes = plt.subplots(rows, _COLUMNS, figsize=(10, 1.7 * rows + 0.8), layout="constrained", squeeze=False, sharey=True)
    for panel, one in zip(axes.flat, jobs, strict=False):
        _panel(panel, one)
    for empty in axes.flat[len(jobs) :]:
        empty.set_visible(False)
    axes[0][0].set_yticks(range(len(_NAMES)), _NAMES.values())
    axes[0][0].invert_yaxis()
    figure.suptitle(
        "Events per CPU second after the start: median, lowest and highest round; each job has a scale of its own",
        x=0.01,
        ha="left",
        fontsize=11,
    )
    _save(figure, Path(into))


def _save(figure: Any, into: Path) -> None:
    """With a title for people who do not see it, and colours for a dark page."""
    drawn = io.StringIO()
    figure.savefig(drawn, format="svg", metadata={"Date": None})
    into.write_text(drawn.getvalue().replace(" <defs>", f" <title>{_TITLE}</title>\n {_DARK}\n <defs>", 1), encoding="utf-8")


def _panel(panel: Any, one: dict[str, Any]) -> None:
    longest = max((rate for contestant in _NAMES for rate in _rates(one, contestant)), default=1.0)
    for place, (contestant, colour) in enumerate(_COLOURS.items()):
        rates = _rates(one, contestant)
        if rates:
            _bar(panel, place, rates, colour, longest)
        else:
            why = "no figures" if one["results"].get(contestant) else "no results"
            panel.text(0.01 * longest, place, why, va="center", color=_GREY, fontsize=9)
    panel.set_title(one["workload"], loc="left", fontsize=10, fontweight="bold")
    panel.set_xlim(0, longest * _ROOM)
    # Each bar has its figure.
    panel.set_xticks([])
    panel.tick_params(left=False)
    panel.spines[["top", "right", "bottom"]].set_visible(False)
    panel.spines["left"].set_color(_GREY)


def _bar(panel: Any, place: int, rates: list[float], colour: str, longest: float) -> None:
    median, lowest, highest = statistics.median(rates), min(rates), max(rates)
    whiskers = [[median - lowest], [highest - median]] if len(rates) > 1 else None
    panel.barh(place, median, 0.78, color=colour, xerr=whiskers, error_kw={"lw": 1, "capsize": 2, "ecolor": _INK})
    panel.text(highest + 0.015 * longest, place, f"{median:,.0f}", va="center", fontsize=9)


def _rates(one: dict[str, Any], contestant: str) -> list[float]:
    """Of the rounds that count and have figures after the start."""
    rates = [result["warm_events_per_cpu_s"] for result in one["results"].get(contestant, []) if not result["wrong"]]
    return [rate for rate in rates if rate]


if __name__ == "__main__":
    main(*sys.argv[1:])
