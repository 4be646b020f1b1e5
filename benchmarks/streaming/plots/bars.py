"""Draws results as bars: ``bars.py RESULTS.json OUT.svg``, by the Python of matplotlib."""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import Any

import matplotlib  # type: ignore[import-not-found]

matplotlib.use("svg")
import matplotlib.pyplot as plt  # type: ignore[import-not-found]

# Told apart by people who see no red or green, and in print. Source: Okabe and Ito's palette.
_COLOURS = {"penstock": "#0072B2", "plain": "#E69F00", "plain_keeping": "#F0E442", "flink": "#CC79A7"}
_NAMES = {"penstock": "Penstock", "plain": "PySpark", "plain_keeping": "PySpark keeping bad records", "flink": "PyFlink SQL"}


def main(results: str, into: str) -> None:
    """One group of bars a job, one bar a contestant; whiskers from the lowest to the highest round."""
    run = json.loads(Path(results).read_text(encoding="utf-8"))
    # The same file for the same results.
    matplotlib.rcParams.update({"svg.hashsalt": "penstock", "font.family": "sans-serif", "font.size": 10, "svg.fonttype": "none"})
    figure, axes = plt.subplots(figsize=(9, 0.9 * len(run["measured"]) + 1.6), layout="constrained")
    jobs = [one["workload"] for one in run["measured"]]
    width = 0.8 / len(_COLOURS)
    for place, (contestant, colour) in enumerate(_COLOURS.items()):
        shown = [(number, _rates(one, contestant)) for number, one in enumerate(run["measured"])]
        bars = [(number, rates) for number, rates in shown if rates]
        medians = [statistics.median(rates) for _, rates in bars]
        ranges = [(statistics.median(rates) - min(rates), max(rates) - statistics.median(rates)) for _, rates in bars]
        spread = [[below for below, _ in ranges], [above for _, above in ranges]]
        heights = [number + (place - (len(_COLOURS) - 1) / 2) * width for number, _ in bars]
        axes.barh(heights, medians, width, label=_NAMES[contestant], color=colour, xerr=spread, error_kw={"lw": 1})
    axes.set_yticks(range(len(jobs)), jobs)
    axes.invert_yaxis()
    axes.set_xlabel("events per CPU second after the start (median; whiskers: lowest and highest round)")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="lower right")
    figure.savefig(into, metadata={"Date": None})


def _rates(one: dict[str, Any], contestant: str) -> list[float]:
    return [result["warm_events_per_cpu_s"] for result in one["results"].get(contestant, []) if not result["wrong"]]


if __name__ == "__main__":
    main(*sys.argv[1:])
