"""Checks of the built site: every link leads to a file and to an id in it, and nothing is loaded from another host."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from penstock.scripts.site.errors import DeadLink, ExternalAsset
from penstock.sizing.errors import PenstockError, Place

# A visitor follows links of these elements; a browser loads those of the others by itself.
_FOLLOWED = ("a", "area")
_ADDRESSES = ("href", "src", "srcset", "poster", "data")
_STYLE_ADDRESS = re.compile(r"(?:url\(|@import )\s*[\"']?((?:https?:)?//[^\"')\s]+)")


class _Reference(NamedTuple):
    element: str
    address: str
    line: int


class _Page(HTMLParser):
    """The ids of a page and the addresses that it names."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.references: list[_Reference] = []
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.ids.add(value)
            elif name in _ADDRESSES and value:
                self.references.append(_Reference(tag, value, self.getpos()[0]))


class BuiltSite:
    """A folder of HTML.

    Args:
        folder: of the site.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()

    def faults(self) -> list[PenstockError]:
        """Dead links (SITE-002) and assets from other hosts (SITE-003)."""
        return [*self._of_pages(), *self._of_styles()]

    @cached_property
    def _pages(self) -> dict[Path, _Page]:
        # The page for what does not exist is shown at any address; its links are absolute.
        return {path: _Page(path) for path in sorted(self._folder.rglob("*.html")) if path.name != "404.html"}

    def _of_pages(self) -> Iterator[PenstockError]:
        for file, page in self._pages.items():
            for reference in page.references:
                place = Place(file=str(file.relative_to(self._folder)), line=reference.line)
                parts = urlsplit(reference.address)
                if parts.netloc:
                    if reference.element not in _FOLLOWED:
                        yield _external(reference.address, place)
                elif not parts.scheme and not self._exists(file, unquote(parts.path), unquote(parts.fragment)):
                    need, fix = "a file of the site, and an id in it", "correct the link in the page's Markdown"
                    yield DeadLink(path=reference.address, need=need, fix=fix, at=place)

    def _of_styles(self) -> Iterator[PenstockError]:
        for file in sorted(self._folder.rglob("*.css")):
            for address in _STYLE_ADDRESS.findall(file.read_text(encoding="utf-8")):
                yield _external(address, Place(file=str(file.relative_to(self._folder))))

    def _exists(self, page: Path, path: str, fragment: str) -> bool:
        target = (page.parent / path).resolve() if path else page
        if target.is_dir():
            target /= "index.html"
        if not target.is_file() or not target.is_relative_to(self._folder):
            return False
        return not fragment or target not in self._pages or fragment in self._pages[target].ids


def _external(address: str, place: Place) -> ExternalAsset:
    return ExternalAsset(path=address, need="a file of the site", fix="ship the file with the site, or remove it", at=place)
