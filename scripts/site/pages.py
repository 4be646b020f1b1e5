"""The repository's Markdown as the generator takes it: links between pages, paths of other files as text, lists and tables on their own."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from penstock.scripts.site.errors import DeadLink
from penstock.sizing.errors import Faults, PenstockError, Place

_HOME = "README.md"
_DOCS = "docs/"
# Pages outside of docs/, which could otherwise have the path of one inside.
_OUTSIDE = "repository/"
_LINK = re.compile(r"(?P<image>!?)\[(?P<text>(?:[^\[\]]|\\[\[\]])*)\]\((?P<target>[^)\s]+)\)")
_OTHER_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:")
_ITEM = re.compile(r"([-*]|\d+\.) ")
_FENCE = re.compile(r"^```.*?^```$", flags=re.MULTILINE | re.DOTALL)


class _Link(NamedTuple):
    """A link of a page; its path is relative to that of the page."""

    page: str
    image: bool
    text: str
    path: str
    anchor: str

    @property
    def leads_to(self) -> str:
        """The path in the repository."""
        return os.path.normpath(PurePosixPath(self.page).parent / self.path)


def site_path(page: str) -> str:
    """Where a page, or a picture, is in the site's source.

    Args:
        page: its path in the repository.
    """
    if page == _HOME:
        return "index.md"
    placed = page.removeprefix(_DOCS) if page.startswith(_DOCS) else _OUTSIDE + page
    path = PurePosixPath(placed)
    return str(path.with_name("index.md") if path.name == "README.md" else path)


def write(root: Path, pages: Sequence[str], into: Path) -> None:
    """Writes the pages and the pictures that they show.

    Args:
        root: folder of the repository.
        pages: their paths in it.
        into: folder of the site's source; created.

    Raises:
        Faults: of DeadLink, SITE-002.
    """
    writer = _Writer(root, frozenset(pages), into)
    for page in pages:
        file = into / site_path(page)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(writer.converted(page), encoding="utf-8")
    if writer.faults:
        raise Faults(writer.faults)


class _Writer:
    """Converts pages, and collects their dead links."""

    def __init__(self, root: Path, pages: frozenset[str], into: Path) -> None:
        self._root = root
        self._pages = pages
        self._into = into
        self.faults: list[PenstockError] = []

    def converted(self, page: str) -> str:
        line, parts = 1, []
        for is_fence, part in _parts((self._root / page).read_text(encoding="utf-8")):
            parts.append(part if is_fence else _separated(self._with_links(page, part, line)))
            line += part.count("\n")
        return "".join(parts)

    def _with_links(self, page: str, text: str, first_line: int) -> str:
        def of(match: re.Match[str]) -> str:
            link = _Link(page, match["image"] == "!", match["text"], *match["target"].partition("#")[::2])
            if not link.path or _OTHER_SCHEME.match(link.path):
                return match[0]
            if link.leads_to.startswith("../") or not (self._root / link.leads_to).exists():
                place = Place(file=page, line=first_line + text.count("\n", 0, match.start("target")))
                need, fix = "a file of the repository", "correct or remove the link"
                self.faults.append(DeadLink(path=match["target"], need=need, fix=fix, at=place))
                return match[0]
            return self._of_the_site(link)

        return _LINK.sub(of, text)

    def _of_the_site(self, link: _Link) -> str:
        path = link.leads_to
        if f"{path}/README.md" in self._pages:
            path = f"{path}/README.md"
        if link.image:
            _copy(self._root / path, self._into / site_path(path))
        elif path not in self._pages:
            return _as_text(link.text, path, folder=(self._root / path).is_dir())
        to = os.path.relpath(site_path(path), PurePosixPath(site_path(link.page)).parent)
        return f"{'!' if link.image else ''}[{link.text}]({to}{f'#{link.anchor}' if link.anchor else ''})"


def _parts(text: str) -> Iterator[tuple[bool, str]]:
    """Whether it is a fenced block, and the text, of each part of a page."""
    end = 0
    for fence in _FENCE.finditer(text):
        yield False, text[end : fence.start()]
        yield True, fence[0]
        end = fence.end()
    yield False, text[end:]


def _as_text(text: str, path: str, *, folder: bool) -> str:
    """The path of a file that is no page, after the link's text if that says more than its name."""
    shown = f"`{path}/`" if folder else f"`{path}`"
    plain = text.replace("`", "").replace("\\", "").rstrip("/")
    return shown if plain == path or path.endswith(f"/{plain}") else f"{text} ({shown})"


def _copy(file: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, to)


def _separated(text: str) -> str:
    """With what Python-Markdown needs and CommonMark does not: an empty line before each list and table, and four spaces in an item."""
    lines: list[str] = []
    # Whether the item that a line is in has several paragraphs.
    parted = False
    for line in text.split("\n"):
        before = lines[-1] if lines else ""
        item, row = _ITEM.match(line) is not None, line.lstrip().startswith("|")
        begins = item and (parted or not (_ITEM.match(before) or before.startswith(" ")))
        if before and (begins or (row and not before.lstrip().startswith("|"))):
            lines.append("")
        parted = not item and (parted or line == "") and (line == "" or line.startswith(" "))
        lines.append(re.sub(r"^ {2,3}(?=\S)", "    ", line))
    return "\n".join(lines)
