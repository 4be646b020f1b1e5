"""The quantities of a plan that people compare: pods, nodes and cost."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from penstock.scripts.render.money import usd
from penstock.sizing.planned import Plan

# Of a plan that there is not.
NONE = "-"


class Quantity(BaseModel):
    """A quantity in which two plans differ.

    Args:
        what: with its unit.
        before: in the first plan.
        now: in the second one.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)

    what: str
    before: str
    now: str


def quantities(before: Plan | None, now: Plan | None) -> tuple[Quantity, ...]:
    """What differs in two plans.

    Args:
        before: the first plan; None: there was none.
        now: the second plan; None: there is none any more.
    """
    old, new = (measured(one) if one is not None else {} for one in (before, now))
    rows = [(what, old.get(what, NONE), new.get(what, NONE)) for what in new or old]
    return tuple(Quantity(what=what, before=was, now=is_) for what, was, is_ in rows if was != is_)


def measured(planned: Plan) -> dict[str, str]:
    """The quantities of a plan: what, with its unit -> value."""
    return dict(_measured(planned))


def _measured(planned: Plan) -> Iterator[tuple[str, str]]:
    pods = planned.pods
    yield "executors", str(planned.totals.executors)
    yield "slots of an executor", str(pods.executor.slots)
    for name, pod in (("executor", pods.executor), ("driver", pods.driver)):
        yield f"memory of {'an' if name == 'executor' else 'the'} {name}, MiB", f"{pod.memory_mib:,}"
        yield f"CPU of {'an' if name == 'executor' else 'the'} {name}, millicores", f"{pod.request_cpu_millicores:,}"
    yield "nodes", NONE if planned.nodes is None else str(planned.nodes.one_batch.nodes)
    yield "USD a month", NONE if planned.cost is None else usd(planned.cost.total.usd_per_month)
