"""Zensical, which renders the pages, in a Python environment of its own, and its configuration."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock.scripts.installation import tool
from penstock.scripts.installation.tool_environment import Progress, ToolEnvironment, own_variables
from penstock.scripts.site.errors import SiteNotBuilt
from penstock.scripts.site.navigation import Section, title
from penstock.scripts.site.pages import site_path

# Some seconds for a hundred pages; minutes on a machine that swaps.
BUILD_LIMIT_S = 600
PAGES, HTML, CONFIGURATION = "pages", "html", "zensical.toml"
# Beside the navigation: what the pages look like, and what lets them search where they are opened as files.
_ASSETS, _STYLE, _WORKER = "docs/site", "extra.css", "worker.js"
# What Zensical's plugin `offline` has each page load from another host, for the same purpose as our script.
_FOREIGN_WORKER = re.compile(r'<script src="https://[^"]+/iframe-worker/shim"[^>]*></script>')
_LOCKS = "requirements"
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_PALETTE = (
    ("(prefers-color-scheme)", "default", "lucide/sun-moon", "Switch to light mode"),
    ("(prefers-color-scheme: light)", "default", "lucide/sun", "Switch to dark mode"),
    ("(prefers-color-scheme: dark)", "slate", "lucide/moon", "Follow the system"),
)


def environment(root: Path) -> ToolEnvironment:
    """Zensical's environment.

    Args:
        root: folder of the repository.
    """
    return ToolEnvironment("site", data=root / _LOCKS)


def configuration(root: Path, sections: Sequence[Section]) -> str:
    """Zensical's configuration, in TOML.

    Args:
        root: folder of the repository.
        sections: of the navigation.
    """
    palette = [
        {"media": media, "scheme": scheme, "toggle": {"icon": icon, "name": name}, "primary": "indigo", "accent": "indigo"}
        for media, scheme, icon, name in _PALETTE
    ]
    features = [
        "content.code.copy", "navigation.footer", "navigation.indexes", "navigation.path", "navigation.tabs", "navigation.top",
        "search.highlight", "toc.follow",
    ]  # fmt: skip
    # The anchors of headings are those that the repository's own links use.
    slugs = {"object": "pymdownx.slugs.slugify", "kwds": {"case": "lower"}}
    extensions = {
        "admonition": {}, "attr_list": {}, "md_in_html": {}, "sane_lists": {}, "tables": {},
        "toc": {"permalink": True, "slugify": slugs},
        "pymdownx.highlight": {"pygments_lang_class": True},
        "pymdownx.superfences": {},
    }  # fmt: skip
    project = {
        "site_name": "Penstock",
        "site_description": "Sizes, provisions, runs and verifies PySpark Structured Streaming jobs on AWS",
        "docs_dir": PAGES,
        "site_dir": HTML,
        "nav": [_entry(root, section) for section in sections],
        "extra_css": [_STYLE],
        "plugins": {"search": {}, "offline": {}},
        "theme": {"font": False, "features": features, "palette": palette},
        "markdown_extensions": extensions,
        "validation": {"invalid_links": True, "invalid_link_anchors": True},
        "extra": {"generator": False},
    }
    return "[project]\n" + "".join(f"{name} = {_toml(value)}\n" for name, value in project.items())


def render(root: Path, folder: Path, progress: Progress = lambda said: None) -> Path:
    """Renders the pages of a folder beside them.

    Args:
        root: folder of the repository.
        folder: with the configuration and the pages.
        progress: called with the current step.

    Returns:
        The folder of the HTML.

    Raises:
        PenstockError: TOOL-001, TOOL-024, SITE-004.
    """
    zensical = environment(root).ensure(progress) / "zensical"
    for name in (_STYLE, _WORKER):
        shutil.copyfile(root / _ASSETS / name, folder / PAGES / name)
    log, own = folder / "zensical.log", own_variables(os.environ)
    command = [str(zensical), "build", "--strict", "--clean"]
    ended = tool.run(command, environment=own, log=log, cwd=folder, limit_s=BUILD_LIMIT_S, progress=progress)
    if ended.code != 0:
        given, need = f"code {ended.code}; {log}:\n{_said(log)}", f"completion within {BUILD_LIMIT_S} s without warnings"
        raise SiteNotBuilt(path="zensical", given=given, need=need, fix="correct the reported error, and retry")
    html = folder / HTML
    for page in html.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        worker = os.path.relpath(html / _WORKER, page.parent)
        page.write_text(_FOREIGN_WORKER.sub(f'<script src="{worker}"></script>', text), encoding="utf-8")
    return html


def _said(log: Path) -> str:
    """What it has warned of, without its own traceback."""
    return _COLOURS.sub("", log.read_text(encoding="utf-8")).partition("Traceback")[0].strip()


def _entry(root: Path, section: Section) -> dict[str, Any]:
    pages = [{title(root / page): site_path(page)} if not page.endswith("/README.md") else site_path(page) for page in section.pages]
    return {section.title: [*pages, *(_entry(root, below) for below in section.sections)]}


def _toml(value: Any) -> str:
    """A value as TOML: JSON, but for the tables."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(name)} = {_toml(of)}" for name, of in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
