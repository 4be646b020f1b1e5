"""Builds the site: navigation, pages, HTML, checks."""

from __future__ import annotations

import shutil
from pathlib import Path

from penstock.scripts.installation.tool_environment import Progress
from penstock.scripts.site import generator, navigation, pages
from penstock.scripts.site.built import BuiltSite
from penstock.sizing.errors import Faults


def build(root: Path, folder: Path, progress: Progress = lambda said: None) -> Path:
    """Builds the site anew.

    Args:
        root: folder of the repository.
        folder: working folder; what an earlier build has left in it is replaced.
        progress: called with the current step.

    Returns:
        The folder of the HTML.

    Raises:
        PenstockError: SITE-001 to SITE-004, TOOL-001, TOOL-024.
    """
    sections = navigation.load(root)
    for earlier in (generator.PAGES, generator.HTML):
        shutil.rmtree(folder / earlier, ignore_errors=True)
    (folder / generator.PAGES).mkdir(parents=True)
    progress("collecting the pages")
    pages.write(root, [page for section in sections for page in section.all_pages()], folder / generator.PAGES)
    (folder / generator.CONFIGURATION).write_text(generator.configuration(root, sections), encoding="utf-8")
    progress("rendering")
    html = generator.render(root, folder, progress)
    progress("checking links")
    if faults := BuiltSite(html).faults():
        raise Faults(faults)
    return html
