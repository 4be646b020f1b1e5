"""Output of the plan of an environment's topics, as a table and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from penstock.scripts.render import table
from penstock.scripts.render.screen import Screen
from penstock.scripts.render.table import Cell, Column, Styled
from penstock.scripts.topics.difference import Action, Changed, TopicChange

_WORDS: dict[Action, str] = {"create": "create", "grow": "grow", "configure": "set"}
_STYLES: dict[Action, str] = {"create": "green", "grow": "yellow", "configure": "yellow"}
_ARROW = "->"
_NUMBERS = (Column("partitions", right=True), Column("replicas", right=True))
_COLUMNS = (Column("action"), Column("topic"), *_NUMBERS, Column("settings", wraps=True))


def render(changes: Sequence[TopicChange], headline: str, screen: Screen) -> str:
    """Render the plan as text: a row per topic, warnings, and a summary.

    Args:
        changes: changes of all topics.
        headline: the environment and its brokers.
        screen: the console that the text is rendered for.
    """
    if not changes:
        return f"{headline}: no job has topics\n"
    rows = table.table(_COLUMNS, map(_row, changes), screen)
    notes = [(f"{change.name}:", warning) for change in changes for warning in change.warnings]
    noted = ["notes", *table.facts(notes, screen), ""] if notes else []
    return "\n".join([headline, "", *rows, "", *noted, count(changes)]) + "\n"


def count(changes: Sequence[TopicChange]) -> str:
    """Count the topics per action, in one line."""
    done = {word: sum(action in change.actions for change in changes) for action, word in _WORDS.items()}
    refused = sum(bool(change.refused) for change in changes)
    same = sum(not change.actions and not change.refused for change in changes)
    return f"{done['create']} to create, {done['grow']} to grow, {done['set']} to set, {same} unchanged, {refused} refused"


def document(changes: Sequence[TopicChange]) -> list[dict[str, Any]]:
    """Render the plan as JSON."""
    return [_topic(change) for change in changes]


def _topic(change: TopicChange) -> dict[str, Any]:
    return {
        "name": change.name,
        "actions": list(change.actions),
        "partitions": _numbers(change.partitions),
        "replication": _numbers(change.replication),
        "config": {name: {"before": changed.before, "after": changed.after} for name, changed in change.config.items()},
        "warnings": list(change.warnings),
        "refused": [{"given": given, "need": need, "fix": fix} for given, need, fix in change.refused],
    }


def _numbers(changed: Changed) -> Mapping[str, int | None]:
    return {"before": None if changed.before is None else int(changed.before), "after": int(changed.after)}


def _row(change: TopicChange) -> list[Cell]:
    settings = ", ".join(f"{name} {_cell(changed)}" for name, changed in change.config.items())
    return [_action(change), change.name, _cell(change.partitions), _cell(change.replication), settings]


def _action(change: TopicChange) -> Cell:
    if change.refused:
        return Styled("refused", "red")
    words = ", ".join(_WORDS[action] for action in change.actions)
    return Styled(words, _STYLES[change.actions[0]]) if words else "-"


def _cell(changed: Changed) -> str:
    return changed.after if changed.before in (None, changed.after) else f"{changed.before} {_ARROW} {changed.after}"


def refusals(changes: Sequence[TopicChange]) -> Iterator[tuple[str, tuple[str, str, str]]]:
    """A topic and a change of it that is refused."""
    for change in changes:
        for refused in change.refused:
            yield change.name, refused
