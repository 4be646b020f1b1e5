"""Text output of the plan of topics."""

from __future__ import annotations

from penstock.scripts.render.screen import Screen
from penstock.scripts.topics.difference import ExistingTopic, WantedTopic, changes
from penstock.scripts.topics.table import count, document, render

WANTED = [
    WantedTopic("events", 10, config={"retention.ms": "604800000"}, replication=3),
    WantedTopic("errors", 1, replication=3, at_creation={"retention.ms": "86400000"}),
    WantedTopic("late", 1, replication=3),
    WantedTopic("narrow", 2, True, replication=3),
]
FOUND = {
    "events": ExistingTopic(8, 3, {"retention.ms": "86400000", "cleanup.policy": "delete"}),
    "late": ExistingTopic(1, 3, {}),
    "narrow": ExistingTopic(4, 3, {}),
}
SHOWN = """\
topics of production on b:9098

  action     topic   partitions  replicas  settings
  grow, set  events     8 -> 10         3  retention.ms 86400000 -> 604800000
  create     errors           1         3  retention.ms 86400000
  -          late             1         3
  refused    narrow           4         3

notes
  events:  from 8 to 10 partitions: most keys map to another partition from now on, so a key's
           records are ordered only before and after the change

1 to create, 1 to grow, 1 to set, 1 unchanged, 1 refused
"""


def test_a_row_says_what_is_done_to_a_topic() -> None:
    assert render(changes(WANTED, FOUND), "topics of production on b:9098", Screen()) == SHOWN


def test_jobs_without_topics_have_a_line() -> None:
    assert render((), "topics of production on b:9098", Screen()) == "topics of production on b:9098: no job has topics\n"
    assert count(()) == "0 to create, 0 to grow, 0 to set, 0 unchanged, 0 refused"


def test_programs_read_numbers_and_reasons() -> None:
    events, *_, narrow = document(changes(WANTED, FOUND))
    assert events["partitions"] == {"before": 8, "after": 10}
    assert events["config"] == {"retention.ms": {"before": "86400000", "after": "604800000"}}
    assert narrow["actions"] == [] and narrow["refused"][0]["given"] == "2 partitions"
