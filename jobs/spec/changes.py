"""The fields in which two specs of a job differ, and all the fields in which they could."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

from penstock.jobs.spec.job import StreamingJob
from penstock.jobs.spec.part import Part

# Stands for any name in the path of a kind of field.
ANY = "*"
Path = tuple[str, ...]


class ChangedField(NamedTuple):
    """A field in which two specs differ; a part that only one of them has, or has as another kind, is one field.

    Args:
        path: of the field, as in the document.
        kind: the same with `ANY` for the names of entries.
    """

    path: Path
    kind: Path


def changed_fields(before: StreamingJob, now: StreamingJob) -> list[ChangedField]:
    """The fields in which two specs differ, in the order of the document; a value that is written out is no change of the default."""
    return list(_changed(before, now, (), ()))


def _changed(before: Any, now: Any, path: Path, kind: Path) -> Iterator[ChangedField]:
    if isinstance(before, Part) and type(before) is type(now):
        for name, field in type(before).model_fields.items():
            own = field.alias or name
            yield from _changed(getattr(before, name), getattr(now, name), (*path, own), (*kind, own))
    elif isinstance(before, Mapping) and isinstance(now, Mapping):
        for name in [*before, *(name for name in now if name not in before)]:
            yield from _changed(before.get(name), now.get(name), (*path, name), (*kind, ANY))
    elif before != now:
        yield ChangedField(path, kind)


def kinds_of_fields(part: type[Part] = StreamingJob, above: Path = ()) -> Iterator[Path]:
    """The kinds of all fields of the document in which two can differ; some come several times."""
    for name, field in part.model_fields.items():
        yield from _kinds(field.annotation, (*above, field.alias or name))


def _kinds(annotation: Any, kind: Path) -> Iterator[Path]:
    """The kinds of fields of a value, or of its parts."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        yield from _kinds(arguments[0], kind)
    elif origin is dict:
        yield (*kind, ANY)
        yield from (below for below in _kinds(arguments[1], (*kind, ANY)) if below != (*kind, ANY))
    elif isinstance(annotation, type) and issubclass(annotation, Part):
        yield from kinds_of_fields(annotation, kind)
    elif origin in (Union, UnionType) and any(isinstance(one, type) and issubclass(one, Part) for one in arguments):
        # One may be there and the other not, or be of another kind.
        yield kind
        for one in arguments:
            if one is not type(None):
                yield from _kinds(one, kind)
    else:
        yield kind
