"""HTML and SVG elements whose text and attributes are always escaped."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

# Source: HTML Living Standard, 13.1.2, "void elements".
_VOID = {"br", "col", "hr", "meta"}


class Markup(str):
    """Text that already is HTML; any other `str` is escaped when it becomes part of an element."""

    __slots__ = ()


def element(name: str, /, *children: str, **attributes: str | float | None) -> Markup:
    """An element.

    Args:
        name: of the tag.
        children: `Markup` verbatim, other text escaped.
        attributes: None leaves one out; an underscore stands for a hyphen, a trailing one for nothing (``class_``). Numbers have at most
            two digits after the point.
    """
    start = "".join([name, *(_attribute(key, value) for key, value in attributes.items() if value is not None)])
    if name in _VOID:
        return Markup(f"<{start}>")
    return Markup(f"<{start}>{joined(children)}</{name}>")


def joined(children: Iterable[str]) -> Markup:
    """Several parts in a row."""
    return Markup("".join(child if isinstance(child, Markup) else escape(child, quote=False) for child in children))


def number(value: float) -> str:
    """A number of a drawing: at most two digits after the point, no ``-0`` and no exponent."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _attribute(key: str, value: str | float) -> str:
    name = key.removesuffix("_").replace("_", "-")
    text = value if isinstance(value, str) else number(value)
    return f' {name}="{escape(text)}"'
