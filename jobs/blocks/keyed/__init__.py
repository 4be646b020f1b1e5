"""Keyed state: an app's own functions with state and timers per key, and the blocks built on them."""

from penstock.jobs.blocks.keyed.connect import ConnectedFunction, Keyed, connect
from penstock.jobs.blocks.keyed.declared import State, list_of, map_of, value
from penstock.jobs.blocks.keyed.deduplicate import deduplicate
from penstock.jobs.blocks.keyed.function import Key, KeyedFunction, Out
from penstock.jobs.blocks.keyed.pattern import Step, pattern
from penstock.jobs.blocks.keyed.process import process

__all__ = [
    "ConnectedFunction",
    "Key",
    "Keyed",
    "KeyedFunction",
    "Out",
    "State",
    "Step",
    "connect",
    "deduplicate",
    "list_of",
    "map_of",
    "pattern",
    "process",
    "value",
]
