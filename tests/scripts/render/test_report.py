"""The report's page: whole, by itself, escaped, and drawn to scale."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.scripts.render.node_shares import shares
from penstock.scripts.render.report import bars, curves, page, recovery
from penstock.scripts.render.report.line_chart import axes_of, draw, runs, tick_step
from penstock.scripts.render.report.markup import Markup, element
from penstock.scripts.render.report.nodes import TALLEST, WIDEST, Scale, drawing, scale_of
from penstock.sizing.cost.usd import UsdRange
from penstock.sizing.errors import HeapTooSmall, Place
from penstock.sizing.explained import Explanation
from penstock.sizing.load.capability import Running, capability
from penstock.sizing.load.capability import curves as curve_points
from penstock.sizing.load.spot_loss import SpotFleet, drain, loss
from penstock.sizing.load.target_rate import needed_rate
from penstock.sizing.planned import SpotPlan, ThroughputPlan
from penstock.sizing.violation import Violation, violated
from tests.scripts.planned_samples import DRIVER, EXECUTORS, HOSTILE, LOAD, cost, group, nodes, placed, planned

VOID = {"meta", "br", "hr", "col"}
ONE_CORE_ONE_GIB = Scale(per_millicore=0.02, per_mib=0.005)


class Page(HTMLParser):
    """Reads a page and holds that every element is closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.words)

    def all(self, tag: str, class_: str | None = None) -> list[dict[str, str]]:
        return [result for name, result in self.elements if name == tag and (class_ is None or class_ in result.get("class", "").split())]


@pytest.fixture(scope="module")
def whole() -> str:
    return page.render(planned(nodes(), cost()), "user-credit", "production", LOAD)


def test_the_page_is_well_formed_and_has_every_section(whole: str) -> None:
    read = Page(whole)
    assert whole.startswith("<!DOCTYPE html>\n<html")
    for word in (
        "user-credit",
        "feasible",
        "us-east-1",
        "2026-07",
        "Nodes",
        "Cost",
        "Throughput and recovery",
        "Explanation",
        "Spark settings",
    ):
        assert word in read.text
    assert len(read.all("details")) == 2
    assert [result["aria-labelledby"] for result in read.all("section")] == ["plan", "nodes", "cost", "curves", "why", "spark"]


def test_the_page_asks_for_nothing_from_elsewhere(whole: str) -> None:
    read = Page(whole)
    assert not {name for name, _ in read.elements} & {"script", "link", "img", "iframe", "object", "embed", "base", "form", "use", "image"}
    assert not {name for _, result in read.elements for name in result} & {"src", "href", "xlink:href", "srcset", "action", "style"}
    assert not re.search(r"url\(|@import|@font-face|javascript:", whole)
    assert "http://" not in whole and "https://" not in whole
    policy = next(result["content"] for result in read.all("meta") if result.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")


def test_the_same_plan_gives_the_same_bytes(whole: str) -> None:
    assert page.render(planned(nodes(), cost()), "user-credit", "production", LOAD) == whole


def test_what_the_user_gives_is_escaped_everywhere() -> None:
    bad = EXECUTORS.model_copy(update={"group": f"{HOSTILE}/executor"})
    plan = planned(
        nodes(
            one_batch=placed(
                group("m6i.4xlarge", bad, pool=HOSTILE), group(None, bad), unschedulable={HOSTILE: 1}, reasons={HOSTILE: HOSTILE}
            ),
            environment=HOSTILE,
        ),
        cost(HOSTILE),
    )
    texts = dict.fromkeys(("code", "title", "file", "path", "given", "need", "fix"), HOSTILE)
    violation = Violation.model_validate({**texts, "line": 3})
    explained = Explanation(number=HOSTILE, value=HOSTILE, rule=HOSTILE, inputs={HOSTILE: HOSTILE}, binding=HOSTILE)
    plan = plan.model_copy(
        update={
            "spark_conf": {HOSTILE: HOSTILE},
            "notes": (HOSTILE,),
            "explain": (explained,),
            "violations": (violation,),
            "feasible": False,
            "kafka": plan.kafka.model_copy(update={"topics": {HOSTILE: 1}}),
        }
    )
    text = page.render(plan, HOSTILE, HOSTILE, LOAD)
    read = Page(text)
    assert "<script" not in text
    assert read.all("script") == []
    assert read.text.count(HOSTILE) > 15
    assert not {name for _, result in read.elements for name in result if name.startswith("on")}


def test_attributes_and_children_are_escaped_but_markup_is_not() -> None:
    assert element("p", "<b>", Markup("<i></i>"), title='"&<') == '<p title="&quot;&amp;&lt;">&lt;b&gt;<i></i></p>'
    assert element("rect", x=1 / 3, y=-0.0, class_="a", hidden=None) == '<rect x="0.33" y="0" class="a"></rect>'


def test_a_plan_without_nodes_cost_and_load_says_why() -> None:
    read = Page(page.render(planned(), "user-credit"))
    assert len(read.all("p", "missing")) == 3
    for word in ("No nodes are planned", "No cost is planned", "spec.load", "No environment"):
        assert word in read.text


def test_an_infeasible_plan_says_what_binds_and_how_to_mend_it() -> None:
    violation = violated(HeapTooSmall, path="spec.executor.memory", given="400m", need="450 MiB", fix="memory: 900m")
    violation = violation.moved(Place(file="a.yaml", line=7, column=1))
    plan = planned().model_copy(update={"feasible": False, "violations": (violation,)})
    text = Page(page.render(plan, "user-credit")).text
    for word in (
        "not feasible",
        "SIZ-004",
        "a.yaml:7",
        "spec.executor.memory = 400m",
        "450 MiB",
        "memory: 900m",
        "NOT FEASIBLE: ",
    ):
        assert word in text


def rectangles(svg: str, kind: str) -> list[tuple[float, float, float, float]]:
    result = Page(svg).all("rect", kind)
    return [(float(one["x"]), float(one["y"]), float(one["width"]), float(one["height"])) for one in result]


def test_pods_are_as_wide_as_their_cpu_and_as_high_as_their_memory() -> None:
    svg = drawing(group("m6i.4xlarge", EXECUTORS), ONE_CORE_ONE_GIB)
    [frame] = rectangles(svg, "frame")
    assert frame[2:] == (320, 327.68)
    executors = rectangles(svg, "executor")
    assert [one[2:] for one in executors] == [(80, 81.92), (80, 81.92)]
    # The next one begins where the last one ends, to the right and upwards.
    for before, after in pairwise(executors):
        assert after[0] == pytest.approx(before[0] + before[2], abs=0.02)
        assert after[1] + after[3] == pytest.approx(before[1], abs=0.02)


def test_the_free_rectangle_is_what_is_left_of_both() -> None:
    svg = drawing(group("m6i.4xlarge", EXECUTORS), ONE_CORE_ONE_GIB)
    cpu, memory = shares(group("m6i.4xlarge", EXECUTORS)) or pytest.fail("a type is known")
    [(x, y, wide, high)], [frame] = rectangles(svg, "free"), rectangles(svg, "frame")
    assert [wide, high] == pytest.approx([cpu.free * 0.02, memory.free * 0.005], abs=0.01)
    assert [x + wide, y] == pytest.approx([frame[0] + frame[2], frame[1]], abs=0.02)


def test_nothing_is_drawn_outside_of_its_node() -> None:
    svg = drawing(group("m6i.4xlarge", DRIVER, EXECUTORS), ONE_CORE_ONE_GIB)
    [(left, top, wide, high)] = rectangles(svg, "frame")
    parts = rectangles(svg, "part")
    assert len(parts) == 2 + 2 + 3 + 1
    for x, y, width, height in parts:
        assert left - 0.02 <= x and x + width <= left + wide + 0.02
        assert top - 0.02 <= y and y + height <= top + high + 0.02


def test_all_nodes_have_one_scale_and_the_largest_fits() -> None:
    drawn = nodes()
    scale = scale_of(drawn)
    frames = [rectangles(drawing(one, scale), "frame")[0] for one in (*drawn.one_batch.groups, *drawn.staged.groups)]
    assert max(frame[2] for frame in frames) == pytest.approx(WIDEST)
    assert max(frame[3] for frame in frames) == pytest.approx(TALLEST)
    # m6i.xlarge has 4 of m6i.4xlarge's 16 vCPUs, and 16 of its 64 GiB.
    assert frames[0][2] == pytest.approx(frames[1][2] / 4, abs=0.01)
    assert frames[0][3] == pytest.approx(frames[1][3] / 4, abs=0.01)


def test_every_part_of_a_node_names_itself_and_its_amounts() -> None:
    svg = drawing(group("m6i.4xlarge", EXECUTORS), ONE_CORE_ONE_GIB)
    assert svg.count("<title>executor: 4 cores, 16 GiB</title>") == 2
    assert "<title>free: 7.61 cores, 24.1 GiB</title>" in svg
    assert 'aria-label="1 node like m6i.4xlarge: cpu 52 % used, memory 62 % used"' in svg


@given(st.just(0.0) | st.floats(1e-6, 1e6), st.just(0.0) | st.floats(1e-6, 1e6), st.floats(1e6, 2e6))
def test_a_cost_bar_is_as_long_as_its_price(one: float, other: float, dearest: float) -> None:
    low, high = sorted((one, other))
    track, pale, full = (result for result in Page(bars.bar(UsdRange(low=low, high=high), dearest)).all("rect"))
    assert float(track["width"]) == bars.FULL
    for drawn, usd in ((pale, high), (full, low)):
        expected = bars.FULL * usd / dearest
        # A trace stays of what is too cheap to see.
        assert float(drawn["width"]) == pytest.approx(max(expected, 2) if expected else 0, abs=0.006)


def test_every_line_of_the_bill_has_a_bar_and_a_row(whole: str) -> None:
    read, bill = Page(whole), cost()
    assert len(read.all("div", "bar")) == len(bill.lines)
    for line in bill.lines:
        assert f"{line.service}: {line.item}" in read.text
    for source in {line.price_source for line in bill.lines}:
        assert source in read.text


def test_a_price_that_nobody_knows_is_said_and_not_drawn() -> None:
    bill = cost()
    lines = tuple(line.model_copy(update={"usd_per_h": None, "usd_per_month": None, "unit_price_usd": None}) for line in bill.lines)
    read = Page(bars.section(bill.model_copy(update={"lines": lines})))
    assert read.all("rect") == []
    assert read.text.count("unknown price") == len(lines)


def test_the_curve_passes_through_its_numbers() -> None:
    points = curve_points(LOAD, 5, range(1, 9))
    chart = curves.throughput_chart(points, LOAD, planned=3)
    axes, svg = axes_of(chart), Page(draw(chart))
    [line] = svg.all("polyline")
    drawn = [tuple(map(float, pair.split(","))) for pair in line["points"].split()]
    for point, (x, y) in zip(points, drawn, strict=True):
        assert [x, y] == pytest.approx([axes.x(point.executors), axes.y(point.capacity_events_per_s)], abs=0.01)
    [mark] = svg.all("line", "mark")
    assert float(mark["x1"]) == float(mark["x2"]) == pytest.approx(axes.x(3), abs=0.01)
    levels = sorted(float(result["y1"]) for result in svg.all("line", "level"))
    assert levels == [pytest.approx(axes.y(rate), abs=0.01) for rate in (needed_rate(LOAD), LOAD.peak_events_per_s)]
    assert (axes.y(0) - axes.y(axes.most)) == pytest.approx(300 - 26 - 46)


def test_a_catch_up_that_never_ends_is_no_point_of_the_curve(whole: str) -> None:
    points = curve_points(LOAD, 5, range(1, 5))
    assert points[0].catch_up_s is None
    assert "never" in Page(whole).text
    [line] = Page(draw(curves.catch_up_chart(points, LOAD, planned=2))).all("polyline")
    assert len(line["points"].split()) == 3


def test_the_loss_of_spot_nodes_is_told_with_what_a_drain_has() -> None:
    fleet = SpotFleet(executors=6, slots_per_executor=2, parallelism=12, nodes=3)
    losses = tuple(loss(LOAD, fleet, lost) for lost in (1, 2, 3))
    spot = SpotPlan(nodes=3, drain=drain(10.0), losses=losses)
    read = Page(recovery.spot_section(spot))
    assert "executors run on 3 of them" in read.text
    assert "A grace period of 10 s would be sufficient" in read.text
    assert len(read.all("tr")) == 1 + len(losses)
    for one in losses:
        assert f"{one.lag_events:,.0f}" in read.text
    assert "Executors drain in time" in recovery.spot_section(SpotPlan(nodes=3, drain=drain(10.0, decommission=True)))


def test_what_the_plan_sustains_names_what_holds_it_back() -> None:
    result = capability(LOAD, Running(tasks=10, trigger_s=10.0, max_offsets_per_trigger=130_000))
    assert result.binding == "batch limit"
    throughput = ThroughputPlan(
        peak_events_per_s=11_700.0, target_events_per_s=19_054, max_offsets_per_trigger=130_000, trigger_s=10.0, capability=result
    )
    text = recovery.capability_section(throughput)
    assert f"a peak of {result.sustained_peak_events_per_s:,.0f} events/s (limited by maxOffsetsPerTrigger)" in text
    assert "19,054 events/s for a peak of 11,700" in text


def test_a_curve_is_cut_where_it_leaves_the_drawing() -> None:
    assert runs([(1, None), (2, 30.0), (3, 10.0), (4, 5.0)], most=20.0) == [[(2.5, 20.0), (3, 10.0), (4, 5.0)]]
    assert runs([(1, 5.0), (2, 30.0), (3, 5.0)], most=17.5) == [[(1, 5.0), (1.5, 17.5)], [(2.5, 17.5), (3, 5.0)]]
    assert runs([(1, 5.0)], most=10.0) == [[(1, 5.0)]]
    assert runs([(1, 50.0), (2, 40.0)], most=10.0) == []


@given(st.floats(1e-6, 1e15))
def test_ticks_are_round_and_few(most: float) -> None:
    step = tick_step(most)
    assert 2 <= most / step <= 5 + 1e-6
    assert f"{step:.0e}"[0] in "125"


@given(st.integers(1, 5000), st.integers(1, 32))
def test_the_plans_executors_are_among_those_that_are_drawn(executors: int, slots: int) -> None:
    numbers = curves.executor_numbers(executors, LOAD, slots)
    assert executors in numbers
    assert numbers == sorted(set(numbers))
    assert numbers[0] == 1
    assert len(numbers) <= 27


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, "never"), (42.4, "42 s"), (120.0, "2 min"), (750.0, "12.5 min"), (7200.0, "2 h"), (11_520.0, "3.2 h")]
)
def test_times_are_read_in_the_unit_that_suits_them(seconds: float | None, text: str) -> None:
    assert curves.duration(seconds) == text
