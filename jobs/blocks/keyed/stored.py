"""State of one key while its rows are processed: read on first use, written back once at the end.

Each access to Spark's state store is a message to the JVM. A key's rows of a micro-batch are processed one after another, so what they
read and write in between stays here.

With a time to live each value, element and entry has the time at which it was written; once expired it is invisible, and a timer removes
it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle
from pyspark.sql.types import DataType, LongType, StructField, StructType

from penstock.jobs.blocks.keyed.declared import TypedState
from penstock.jobs.blocks.keyed.values import from_stored, stored_type, to_stored


@dataclass
class Clock:
    """The clock of the state of the current key.

    Args:
        now_ms: time of the current row or timer.
        ttl_ms: how long state lives after its last write; None: forever.
        written: called with the time at which something will expire.
    """

    now_ms: int = 0
    ttl_ms: int | None = None
    written: Callable[[int], None] = lambda _: None

    def stamp(self) -> tuple[int, ...]:
        """The timestamp stored beside a value that is written now."""
        if self.ttl_ms is None:
            return ()
        self.written(self.now_ms + self.ttl_ms)
        return (self.now_ms,)

    def alive(self, stored: tuple[Any, ...], at_ms: int | None = None) -> bool:
        """Whether a stored value is unexpired now, or at another time."""
        return self.ttl_ms is None or stored[1] + self.ttl_ms > (self.now_ms if at_ms is None else at_ms)

    def expiry_ms(self, stored: tuple[Any, ...]) -> int:
        """When a stored value expires."""
        assert self.ttl_ms is not None
        return int(stored[1]) + self.ttl_ms


class Value:
    """One value of the key; null is the same as no value."""

    def __init__(self, store: Any, of: DataType, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._to, self._from = to_stored(of), from_stored(of)
        self._now: tuple[Any, ...] | None = None
        self._loaded = self._changed = False

    def get(self) -> Any:
        """The value, or None."""
        entry = self._load()
        return self._from(entry[0]) if entry is not None and self._clock.alive(entry) else None

    def set(self, value: Any) -> None:
        """Sets the value."""
        self._now = None if value is None else (self._to(value), *self._clock.stamp())
        self._loaded = self._changed = True

    def clear(self) -> None:
        """Clears the value."""
        self.set(None)

    def forget(self) -> None:
        """Switches to another key."""
        self._now = None
        self._loaded = self._changed = False

    def write(self) -> None:
        """Writes back what changed."""
        if self._changed:
            self._store.clear() if self._now is None else self._store.update(self._now)
        self._changed = False

    def expire(self, at_ms: int) -> int | None:
        """Removes what has expired at a time; returns when the next expires."""
        entry = self._load()
        if entry is None:
            return None
        if self._clock.alive(entry, at_ms):
            return self._clock.expiry_ms(entry)
        self.clear()
        return None

    def _load(self) -> tuple[Any, ...] | None:
        if not self._loaded:
            stored = self._store.get()
            self._now, self._loaded = None if stored is None else tuple(stored), True
        return self._now


class List:
    """The key's list."""

    def __init__(self, store: Any, of: DataType, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._to, self._from = to_stored(of), from_stored(of)
        self._kept: list[tuple[Any, ...]] | None = None
        self._added: list[tuple[Any, ...]] = []
        self._replaced = False

    def get(self) -> list[Any]:
        """Its elements, in the order in which they were appended; a copy."""
        return [self._from(element[0]) for element in self._load() if self._clock.alive(element)]

    def append(self, *values: Any) -> None:
        """Appends elements, without reading the existing ones."""
        stamp = self._clock.stamp() if values else ()
        self._added += [(self._to(value), *stamp) for value in values]

    def set(self, values: list[Any]) -> None:
        """Replaces the list."""
        self._kept, self._added, self._replaced = [], [], True
        self.append(*values)

    def clear(self) -> None:
        """Removes all elements."""
        self.set([])

    def forget(self) -> None:
        """Switches to another key."""
        self._kept, self._added, self._replaced = None, [], False

    def write(self) -> None:
        """Writes back what changed."""
        if self._replaced:
            everything = self._load()
            self._store.put(everything) if everything else self._store.clear()
        elif self._added:
            self._store.appendList(self._added)
        self._kept = None if self._kept is None else self._load()
        self._added, self._replaced = [], False

    def expire(self, at_ms: int) -> int | None:
        """Removes what has expired at a time; returns when the next expires."""
        everything = self._load()
        alive = [element for element in everything if self._clock.alive(element, at_ms)]
        if len(alive) < len(everything):
            self._kept, self._added, self._replaced = alive, [], True
        return min(map(self._clock.expiry_ms, alive), default=None)

    def _load(self) -> list[tuple[Any, ...]]:
        if self._kept is None:
            self._kept = [tuple(element) for element in self._store.get()]
        return [*self._kept, *self._added]


class Map:
    """The key's map."""

    def __init__(self, store: Any, key: DataType, value: DataType, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._key_to, self._key_from = to_stored(key), from_stored(key)
        self._to, self._from = to_stored(value), from_stored(value)
        self._known: dict[Any, tuple[Any, ...] | None] = {}
        self._changed: set[Any] = set()
        self._complete = False

    def get(self, key: Any, default: Any = None) -> Any:
        """The value of a key, or the default."""
        entry = self._load(self._key_to(key))
        return self._from(entry[0]) if entry is not None and self._clock.alive(entry) else default

    def __contains__(self, key: object) -> bool:
        entry = self._load(self._key_to(key))
        return entry is not None and self._clock.alive(entry)

    def put(self, key: Any, value: Any) -> None:
        """Sets the value of a key."""
        self._change(self._key_to(key), (self._to(value), *self._clock.stamp()))

    def remove(self, key: Any) -> None:
        """Removes a key, if it exists."""
        self._change(self._key_to(key), None)

    def items(self) -> Iterator[tuple[Any, Any]]:
        """All keys with their values, in a deterministic order."""
        for key, entry in self._everything():
            if self._clock.alive(entry):
                yield self._key_from(key), self._from(entry[0])

    def keys(self) -> Iterator[Any]:
        """All keys."""
        return (key for key, _ in self.items())

    def clear(self) -> None:
        """Removes all keys."""
        for key, _ in self._everything():
            self._change(key, None)

    def forget(self) -> None:
        """Switches to another key."""
        self._known, self._changed, self._complete = {}, set(), False

    def write(self) -> None:
        """Writes back what changed."""
        for key in sorted(self._changed, key=repr):
            entry = self._known[key]
            self._store.removeKey((key,)) if entry is None else self._store.updateValue((key,), entry)
        self._changed = set()

    def expire(self, at_ms: int) -> int | None:
        """Removes what has expired at a time; returns when the next expires."""
        following: int | None = None
        for key, entry in self._everything():
            if not self._clock.alive(entry, at_ms):
                self._change(key, None)
            else:
                expiry_ms = self._clock.expiry_ms(entry)
                following = expiry_ms if following is None else min(following, expiry_ms)
        return following

    def _load(self, key: Any) -> tuple[Any, ...] | None:
        if key not in self._known and not self._complete:
            stored = self._store.getValue((key,))
            self._known[key] = None if stored is None else tuple(stored)
        return self._known.get(key)

    def _change(self, key: Any, entry: tuple[Any, ...] | None) -> None:
        self._known[key] = entry
        self._changed.add(key)

    def _everything(self) -> list[tuple[Any, tuple[Any, ...]]]:
        if not self._complete:
            for key, stored in self._store.iterator():
                self._known.setdefault(_hashable(key[0]), tuple(stored))
            self._complete = True
        return sorted(((key, stored) for key, stored in self._known.items() if stored is not None), key=lambda entry: repr(entry[0]))


Stored = Value | List | Map


def opened(handle: StatefulProcessorHandle, name: str, state: TypedState, clock: Clock) -> Stored:
    """A function's state in Spark's store."""
    entry = _entry(state.of, clock)
    if state.kind == "value":
        return Value(handle.getValueState(name, entry), state.of, clock)
    if state.kind == "list":
        return List(handle.getListState(name, entry), state.of, clock)
    key = StructType([StructField("key", stored_type(state.key))])
    return Map(handle.getMapState(name, key, entry), state.key, state.of, clock)


def _entry(of: DataType, clock: Clock) -> StructType:
    entry = [StructField("value", stored_type(of))]
    return StructType(entry if clock.ttl_ms is None else [*entry, StructField("written_ms", LongType())])


def _hashable(key: Any) -> Any:
    """A key as it comes back from the store: structs are rows there, and tuples here."""
    return tuple(map(_hashable, key)) if isinstance(key, tuple) else key
