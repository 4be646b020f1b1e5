"""PROCESS of two inputs in SQL, by a ConnectedFunction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql import Row

from penstock.jobs.blocks.keyed import ConnectedFunction, Key
from tests.jobs.spark.blocks import Input, row, run, same
from tests.jobs.spark.running import Surroundings
from tests.jobs.spark.test_changes import query

TEXT = """
CREATE KEYED FUNCTION priced RETURNS TABLE (user STRING, paid INT) STATE (price INT)
  AS 'tests.jobs.spark.chaos.test_connected_in_sql.Priced';
PROCESS clicks BY user AND prices BY user WITH priced IN ORDER OF TIME
"""


class Priced(ConnectedFunction):
    """A click costs what the last price before it says."""

    def on_left(self, row: Row, key: Key) -> Iterator[Mapping[str, Any]]:
        yield {"user": row.user, "paid": row.n * (key.value("price").get() or 0)}

    def on_right(self, row: Row, key: Key) -> None:
        key.value("price").set(row.price)


def test_two_inputs_share_the_state_of_a_key_in_the_order_of_time(surroundings: Surroundings) -> None:
    clicks = Input("user STRING, n INT", [[row("3", user="ann", n=2), row("1", user="ann", n=1)], [row("60", user="eve", n=0)]])
    prices = Input("user STRING, price INT", [[row("2", user="ann", price=5)], [row("60", user="eve", price=1)]])
    ran = run(surroundings, {"clicks": clicks, "prices": prices}, lambda streams: query(surroundings.session, TEXT, **streams))
    same(ran.rows, [{"user": "ann", "paid": 0}, {"user": "ann", "paid": 10}])
