"""The navigation: sections and their pages in order, from ``docs/site/navigation.yaml``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from penstock.scripts.site.errors import WrongNavigation
from penstock.sizing.errors import Faults, PenstockError, Place

FILE = "docs/site/navigation.yaml"
_DOCS = "docs"


class Section(BaseModel):
    """A section of the navigation.

    Args:
        title: as readers see it.
        pages: in order, by their paths in the repository. The first is the section's own page if it is a README.
        sections: those below it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str
    pages: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()

    def all_pages(self) -> list[str]:
        """Its pages and those of the sections below it, in order."""
        return [*self.pages, *(page for section in self.sections for page in section.all_pages())]


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    sections: tuple[Section, ...] = Field(min_length=1)


def load(root: Path) -> tuple[Section, ...]:
    """Reads the navigation, with the pages that its patterns stand for.

    A pattern, such as ``docs/decisions/*.md``, stands for the pages that no entry names, in the order of their names; there may be none.
    Sections without pages are left out.

    Args:
        root: folder of the repository.

    Raises:
        WrongNavigation: SITE-001, all of them together.
    """
    file = root / FILE
    try:
        document = _Document.model_validate(yaml.safe_load(file.read_text(encoding="utf-8")))
    except (yaml.YAMLError, ValidationError) as error:
        fix = "correct it; scripts/site/navigation.py has its form"
        raise WrongNavigation(given=str(error), fix=fix, at=Place(file=FILE)) from error
    named = {page for section in document.sections for page in section.all_pages() if "*" not in page}
    sections = _with_pages(document.sections, root, named)
    if faults := _faults(sections, root, file.read_text(encoding="utf-8")):
        raise Faults(faults)
    return sections


def title(page: Path) -> str:
    """The first heading of a page, without marks of code."""
    heading = re.search(r"^# (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return heading[1].replace("`", "") if heading else page.stem


def _with_pages(sections: Sequence[Section], root: Path, named: set[str]) -> tuple[Section, ...]:
    filled = (
        Section(
            title=section.title,
            pages=tuple(page for entry in section.pages for page in (_matches(entry, root, named) if "*" in entry else [entry])),
            sections=_with_pages(section.sections, root, named),
        )
        for section in sections
    )
    return tuple(section for section in filled if section.all_pages())


def _matches(pattern: str, root: Path, named: set[str]) -> list[str]:
    return [page for page in sorted(path.relative_to(root).as_posix() for path in root.glob(pattern)) if page not in named]


def _faults(sections: Sequence[Section], root: Path, text: str) -> list[PenstockError]:
    counts = Counter(page for section in sections for page in section.all_pages())
    pages = {path.relative_to(root).as_posix() for path in (root / _DOCS).rglob("*.md")}
    faults: list[PenstockError] = [
        WrongNavigation(path=page, need="an existing page", fix="correct the path or remove it", at=_place(page, text))
        for page in counts
        if not (root / page).is_file()
    ]
    faults += [
        WrongNavigation(path=page, given=f"listed {count} times", need="one place", fix="keep one", at=_place(page, text))
        for page, count in counts.items()
        if count > 1
    ]
    faults += [
        WrongNavigation(path=page, given="not listed", need="one place", fix="add it to a section", at=Place(file=FILE))
        for page in sorted(pages - set(counts))
    ]
    return faults


def _place(page: str, text: str) -> Place:
    line = next((number for number, line in enumerate(text.splitlines(), start=1) if page in line), None)
    return Place(file=FILE, line=line)
