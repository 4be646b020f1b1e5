"""The page of a plan: requirements, nodes, cost, curves, and the explanation of each number."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.scripts.render.money import usd
from penstock.scripts.render.node_shares import counted
from penstock.scripts.render.report import bars, curves, nodes, recovery, summary
from penstock.scripts.render.report.markup import Markup, element, joined
from penstock.scripts.render.report.style import STYLE
from penstock.scripts.render.report.tables import Column, facts, folded, table
from penstock.sizing.cost.billed import Bill
from penstock.sizing.explained import Explanation
from penstock.sizing.load.load import Load
from penstock.sizing.planned import Plan
from penstock.sizing.units import cpu_text, memory_text
from penstock.sizing.violation import Violation

# Nothing is fetched or executed, whatever the page contains.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def render(plan: Plan, job: str, environment: str = "", load: Load | None = None) -> str:
    """The page.

    Args:
        plan: the plan.
        job: its name.
        environment: its name; empty if the plan is for none.
        load: the plan's load, for the curves; None: no curves.

    Returns:
        HTML; the same plan yields the same text.
    """
    title = f"{job} in {environment}" if environment else job
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"{title}: the plan"),
        element("style", Markup(STYLE)),
    )
    main = element("main", *_sections(plan, load))
    body = element("body", _header(plan, job, environment), main, _footer(plan))
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def _header(plan: Plan, job: str, environment: str) -> Markup:
    verdict = element("span", "feasible" if plan.feasible else "not feasible", class_="verdict good" if plan.feasible else "verdict bad")
    return element(
        "header",
        element("p", "Sizing plan", class_="kind"),
        element("h1", job, " ", verdict),
        element("p", _of_what(plan, environment), class_="aside"),
        facts(list(_key_figures(plan))),
        *([_violations(plan)] if plan.violations else []),
    )


def _of_what(plan: Plan, environment: str) -> str:
    if plan.nodes is not None:
        where = f"Environment {plan.nodes.environment}, {plan.nodes.region}"
        return f"{where}. Instance types of {plan.nodes.catalog_date}. {_priced(plan.cost)}".rstrip()
    return f"Environment {environment}." if environment else "No environment: pods only."


def _priced(bill: Bill | None) -> str:
    dates = sorted({line.price_date for line in bill.lines}) if bill is not None else []
    return f"Prices of {', '.join(dates)}." if dates else ""


def _key_figures(plan: Plan) -> Iterator[tuple[str, str]]:
    executor, totals = plan.pods.executor, plan.totals
    yield "executors", f"{totals.executors:,} x {counted(executor.slots or 1, 'slot')}"
    yield "per executor", f"{memory_text(executor.memory_mib)}, {cpu_text(executor.request_cpu_millicores)}"
    if plan.nodes is not None:
        first, staged = plan.nodes.one_batch.nodes, plan.nodes.staged.nodes
        yield "nodes", f"{first:,}" if first == staged else f"{first:,} to {staged:,}" if first < staged else f"{staged:,} to {first:,}"
    if plan.cost is not None:
        known = "" if plan.cost.total.complete and not _homeless(plan) else "at least "
        yield "USD a month", known + usd(plan.cost.total.usd_per_month, decimals=0)
    if plan.throughput is not None:
        yield "sustained peak", f"{plan.throughput.capability.sustained_peak_events_per_s:,.0f} events/s"


def _violations(plan: Plan) -> Markup:
    return element(
        "div",
        element("h2", "Violated constraints"),
        *(element("div", *_violation(violation), class_="violation") for violation in plan.violations),
        class_="violations",
    )


def _violation(violation: Violation) -> Iterator[Markup]:
    at = "" if violation.at is None else str(violation.at)
    given = " = ".join(text for text in (violation.path, violation.given) if text)
    yield element("p", element("strong", violation.title), " ", element("span", violation.code, class_="code k"))
    rows = [("at", "  ".join(text for text in (at, given) if text)), ("need", violation.need), ("fix", violation.fix)]
    yield facts([(name, text) for name, text in rows if text])


def _sections(plan: Plan, load: Load | None) -> Iterator[Markup]:
    yield _section("plan", "Plan", summary.section(plan))
    yield _section("nodes", "Nodes", _nodes(plan))
    yield _section("cost", "Cost", _cost(plan))
    yield _section("curves", "Throughput and recovery", _curves(plan, load))
    if plan.explain:
        title = f"Rules and inputs of {counted(len(plan.explain), 'number')}"
        yield _section("why", "Explanation", folded(title, _explanations(plan.explain)))
    title = f"{counted(len(plan.spark_conf), 'setting')} passed to Spark"
    yield _section("spark", "Spark settings", folded(title, _settings(plan)))


def _section(identity: str, title: str, *children: Markup) -> Markup:
    return element("section", element("h2", title, id=identity), *children, aria_labelledby=identity)


def _nodes(plan: Plan) -> Markup:
    if plan.nodes is None:
        return _missing("No nodes are planned: the environment has no cluster, so the placement of the pods is not known.")
    return nodes.section(plan.nodes)


def _cost(plan: Plan) -> Markup:
    if plan.cost is None:
        return _missing("No cost is planned: it requires nodes and an AWS region.")
    drawn = bars.section(plan.cost)
    return joined([_missing("Pods without a node are not included in the cost."), drawn]) if _homeless(plan) else drawn


def _homeless(plan: Plan) -> bool:
    """Whether some pods have no node on a first start, which is what the price is based on."""
    return plan.nodes is not None and bool(plan.nodes.staged.unschedulable)


def _curves(plan: Plan, load: Load | None) -> Markup:
    none = "No curves: the spec sets parallelism instead of load. Set spec.load to get curves."
    return joined(
        [
            *([recovery.capability_section(plan.throughput)] if plan.throughput is not None else []),
            _missing(none) if load is None else curves.section(plan, load),
            *([recovery.spot_section(plan.spot)] if plan.spot is not None else []),
        ]
    )


def _missing(why: str) -> Markup:
    return element("p", why, class_="missing")


def _explanations(explained: tuple[Explanation, ...]) -> Markup:
    columns = [
        Column("number", code=True, wide=True),
        Column("value", numeric=True),
        Column("rule", wide=True),
        Column("inputs", wide=True),
        Column("binding constraint"),
    ]
    rows = [
        [
            explanation.number,
            "none" if explanation.value is None else _value(explanation.value),
            explanation.rule,
            ", ".join(f"{name} {_value(value)}" for name, value in explanation.inputs.items()),
            explanation.binding,
        ]
        for explanation in explained
    ]
    return table(columns, rows, caption="Explanation of each number")


def _settings(plan: Plan) -> Markup:
    rows = [[key, value] for key, value in sorted(plan.spark_conf.items())]
    return table([Column("key", code=True), Column("value", code=True)], rows, caption="Spark settings")


def _value(value: int | float | str) -> str:
    return value if isinstance(value, str) else f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"


def _footer(plan: Plan) -> Markup:
    return element(
        "footer", f"Generated by penstock report, schema version {plan.schema_version}. No live data: the same plan yields the same page."
    )
