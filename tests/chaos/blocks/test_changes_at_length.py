"""Changes of a key's aggregates: the same whatever the micro-batches, in the order of event time."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import functions as F

from penstock.jobs.blocks.changes import changelog
from penstock.jobs.blocks.joins import union
from penstock.jobs.stream.streams import Stream
from tests.jobs.spark.blocks import Input, row, run
from tests.jobs.spark.running import Surroundings


def test_changes_do_not_depend_on_the_micro_batches(surroundings: Surroundings) -> None:
    first = [row("3", user="bob", n=1), row("1", user="ann", n=1), row("2", user="bob", n=2)]
    then = [row("11", user="ann", n=2), row("12", user="ann", n=0), row("13", user="bob", n=None)]
    end = [row("60", user="eve", n=0)]
    splits = {"once": [[*then, *first], [], end], "thrice": [first, then, end], "all": [[first[0]], [*first[1:], *then], end]}
    # Rows of the second micro-batch are not late by it.
    inputs = {name: Input("user STRING, n INT", batches, bound_s=20) for name, batches in splits.items()}

    def build(streams: Mapping[str, Stream]) -> Stream:
        keyed = {name: changelog(streams[name], keys=["user"], total="sum(n)") for name in ("once", "thrice")}
        keyed["all"] = changelog(streams["all"], total="sum(n)").select(user="'all'", total="total", _op="_op")
        return union(*(rows.select(of=F.lit(name), user="user", total="total", op="_op") for name, rows in keyed.items()))

    of_users = {"ann": "+I 1 -U 1 +U 3", "bob": "+I 2 -U 2 +U 3"}
    expected = {(name, user): changes for name in ("once", "thrice") for user, changes in of_users.items()}
    changes: dict[tuple[str, str], list[str]] = {}
    for one in run(surroundings, inputs, build).rows:
        changes.setdefault((one["of"], one["user"]), []).append(f"{one['op']} {one['total']}")
    # Rows of one key come in their order.
    assert {key: " ".join(ops) for key, ops in changes.items()} == {**expected, ("all", "all"): "+I 1 -U 1 +U 3 -U 3 +U 4 -U 4 +U 6"}
