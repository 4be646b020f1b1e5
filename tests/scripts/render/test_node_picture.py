"""The terminal's picture of the nodes: bars to scale, readable without colour."""

from __future__ import annotations

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.scripts.render.node_picture import cells, for_stream, has_blocks, render
from penstock.scripts.render.node_shares import same_nodes, shares
from penstock.scripts.render.screen import colour_wanted
from tests.scripts.planned_samples import DRIVER, EXECUTORS, group, nodes, placed

COLOUR = re.compile(r"\x1b\[[0-9]+m")
BAR = re.compile(r"^    (cpu|memory) +(\S(?:.*?\S)?)  +(-?\d+) % used, (.+) free$")


def bars(text: str) -> list[tuple[str, str, str]]:
    matches = [BAR.match(line) for line in text.splitlines()]
    return [(match[1], match[2], match[3]) for match in matches if match]


@given(st.lists(st.integers(0, 10**7), min_size=1, max_size=40).filter(any), st.integers(1, 200))
def test_the_parts_of_a_bar_fill_it_and_each_is_less_than_a_cell_off(amounts: list[int], width: int) -> None:
    widths = cells(amounts, width)
    assert sum(widths) == width
    for amount, result in zip(amounts, widths, strict=True):
        assert abs(result - amount * width / sum(amounts)) < 1 + 1e-9


@pytest.mark.parametrize("width", [60, 80, 100])
@pytest.mark.parametrize("unicode", [True, False])
def test_every_bar_has_the_same_width_and_its_pods_are_to_scale(width: int, unicode: bool) -> None:
    result = bars(render(nodes(one_batch=placed(group("m6i.4xlarge", EXECUTORS))), width, unicode=unicode))
    length = width - 43
    assert {len(bar) for _, bar, _ in result} == {length}
    cpu, memory = result[0][1], result[1][1]
    free, reserve = ("·", "▓") if unicode else (".", "#")
    resources = shares(group("m6i.4xlarge", EXECUTORS))
    assert resources is not None
    assert abs(cpu.count(free) - resources[0].free * length / 16_000) < 1
    assert abs(memory.count(free) - resources[1].free * length / 65_536) < 1
    assert abs(memory.count(reserve) - resources[1].amount("reserve") * length / 65_536) < 1


def test_the_shares_of_a_node_add_up_to_its_capacity() -> None:
    cpu, memory = shares(group("m6i.4xlarge", DRIVER, EXECUTORS)) or pytest.fail("a type is known")
    assert sum(part.amount for part in cpu.parts) == cpu.capacity == 16_000
    assert sum(part.amount for part in memory.parts) == memory.capacity == 65_536
    assert (cpu.amount("driver"), cpu.amount("executor"), memory.amount("executor")) == (2000, 8000, 32_768)
    assert cpu.used_percent == round(100 * (16_000 - cpu.free) / 16_000)


def test_pods_side_by_side_are_told_apart_and_named() -> None:
    text = render(nodes(one_batch=placed(group("m6i.4xlarge", EXECUTORS))), unicode=False)
    assert len(re.findall(r"\[=+E=+\]", bars(text)[0][1])) == 2
    assert "2 executors of 4 cores, 16 GiB" in text


def test_pods_too_many_to_be_told_apart_are_one_block_with_their_number() -> None:
    many = EXECUTORS.model_copy(update={"count": 90, "cpu_millicores": 1000, "memory_mib": 3000})
    bar = bars(render(nodes(one_batch=placed(group("m6i.24xlarge", many))), unicode=False))[0][1]
    assert "E x90" in bar
    assert len(bar) == 57


def test_the_picture_in_full() -> None:
    text = render(nodes(staged=placed(group("m6i.4xlarge", EXECUTORS, at_s=12.0)), one_batch=placed(group("m6i.4xlarge", EXECUTORS))), 90)
    assert text == (
        "All pods at once: 1 node (production, us-east-1, instance types of 2026-07)\n"
        "\n"
        "  1 node like m6i.4xlarge, pool executors, spot, 1 type, 0.768 USD/h as on-demand\n"
        "    cpu     ▒█████E█████▊█████E█████▊······················   52 % used, 7.61 cores free\n"
        "    memory  ▓▓▓▓▓▓█████E█████▊█████E████▊··················   62 % used, 24.1 GiB free\n"
        "            2 executors of 4 cores, 16 GiB; DaemonSets 0.28 cores, 232 MiB;\n"
        "            system reserve 0.11 cores, 7.7 GiB\n"
        "\n"
        "The driver first, executors as Spark requests them: the same nodes, the last asked for\n"
        "after 12 s.\n"
        "\n"
        "  ▓ system reserve   ▒ DaemonSets   █E▊ executor   · free\n"
    )


def test_the_staged_order_is_drawn_where_its_nodes_are_others() -> None:
    assert not same_nodes(nodes().one_batch, nodes().staged)
    assert render(nodes()).count(" like ") == 4


def test_the_order_and_the_grouping_of_the_same_nodes_do_not_matter() -> None:
    driver, executor = group("m6i.xlarge", DRIVER, pool="drivers"), group("m6i.4xlarge", EXECUTORS, count=2)
    apart = placed(group("m6i.4xlarge", EXECUTORS, at_s=1.0), driver, group("m6i.4xlarge", EXECUTORS, at_s=2.0))
    assert same_nodes(placed(driver, executor), apart)


def test_no_line_is_wider_than_asked() -> None:
    for width in (60, 77, 100):
        assert max(len(line) for line in render(nodes(), width).splitlines()) <= width


def test_colour_changes_nothing_but_the_colour() -> None:
    coloured = render(nodes(), colour=True)
    assert COLOUR.search(coloured)
    assert COLOUR.sub("", coloured) == render(nodes())


def test_without_block_characters_all_is_ascii() -> None:
    assert render(nodes(), unicode=False).isascii()


def test_pods_without_a_node_and_nodes_without_a_type_say_why() -> None:
    text = render(nodes(one_batch=placed(group(None, EXECUTORS), unschedulable={"driver": 1}, reasons={"driver": "no pool tolerates it"})))
    assert "1 node of pool executors with 2 executors of 4 cores, 16 GiB: no instance type is large enough" in text
    assert "1 driver without a node: no pool tolerates it" in text


def test_a_file_has_no_colour_and_an_ascii_stream_no_blocks() -> None:
    ascii_stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    assert for_stream(nodes(), ascii_stream, {"TERM": "xterm"}) == render(nodes(), unicode=False)
    utf8_stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    assert for_stream(nodes(), utf8_stream, {"TERM": "xterm"}) == render(nodes())


def test_the_user_may_forbid_colour() -> None:
    assert colour_wanted({"TERM": "xterm"})
    assert colour_wanted({"NO_COLOR": "", "TERM": "xterm"})
    assert not colour_wanted({"NO_COLOR": "1", "TERM": "xterm"})
    assert not colour_wanted({"TERM": "dumb"})


@pytest.mark.parametrize(("encoding", "has"), [("utf-8", True), ("ascii", False), ("latin-1", False), (None, False), ("no-such", False)])
def test_which_encodings_have_the_blocks(encoding: str | None, has: bool) -> None:
    assert has_blocks(encoding) is has
