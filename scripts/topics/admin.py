"""What ``penstock topics`` needs of whoever manages the topics: the brokers themselves, or MSK's API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from penstock.scripts.topics.difference import Action, ExistingTopic, TopicChange
from penstock.sizing.errors import PenstockError


class TopicAdmin(Protocol):
    """Reads and changes the topics of one cluster."""

    @property
    def said(self) -> str:
        """What has come of an action that `do` has applied."""

    def existing(self, names: Iterable[str]) -> Mapping[str, ExistingTopic]:
        """Those of the topics that exist."""

    def refusals(self, changes: Sequence[TopicChange]) -> list[PenstockError]:
        """Errors of changes that would be rejected, as far as this is known before one is made."""

    def do(self, change: TopicChange, action: Action) -> None:
        """Apply one action to a topic."""

    def settle(self) -> None:
        """Wait until all applied actions are visible."""
