"""The documentation's site: every page is in its navigation, its links lead somewhere, and it loads nothing from elsewhere."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from penstock.scripts.layout import ROOT
from penstock.scripts.site import navigation, pages
from penstock.scripts.site.__main__ import main
from penstock.scripts.site.build import build
from penstock.scripts.site.built import BuiltSite
from penstock.scripts.site.errors import DeadLink, ExternalAsset, WrongNavigation
from penstock.sizing.errors import Faults, PenstockError


def _repository(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_md", ".md").replace("_yaml", ".yaml").replace("_py", ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def _faults(error: PenstockError) -> list[tuple[type[PenstockError], str, str]]:
    return [(type(fault), fault.path, str(fault.at)) for fault in error.errors]


def test_the_navigation_has_every_page_of_docs_once() -> None:
    listed = [page for section in navigation.load(ROOT) for page in section.all_pages()]
    docs = [path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")]
    assert sorted(page for page in listed if page.startswith("docs/")) == sorted(docs)


def test_a_page_that_is_missing_listed_twice_or_not_at_all_is_a_fault(tmp_path: Path) -> None:
    text = "sections:\n  - title: A\n    pages: [docs/one.md, docs/gone.md]\n  - title: B\n    pages:\n      - docs/one.md\n"
    root = _repository(tmp_path, docs__one_md="# 1", docs__two_md="# 2", docs__site__navigation_yaml=text)
    with pytest.raises(Faults) as caught:
        navigation.load(root)
    assert _faults(caught.value) == [
        (WrongNavigation, "docs/gone.md", f"{navigation.FILE}:3"),
        (WrongNavigation, "docs/one.md", f"{navigation.FILE}:3"),
        (WrongNavigation, "docs/two.md", navigation.FILE),
    ]


def test_a_pattern_stands_for_the_pages_without_an_entry_and_an_empty_section_is_left_out(tmp_path: Path) -> None:
    text = "sections:\n  - title: A\n    pages: [docs/b.md, docs/*.md]\n  - title: B\n    pages: [docs/none/*.md]\n"
    root = _repository(tmp_path, docs__a_md="# a", docs__b_md="# b", docs__c_md="# c", docs__site__navigation_yaml=text)
    (section,) = navigation.load(root)
    assert section.pages == ("docs/b.md", "docs/a.md", "docs/c.md")


@pytest.mark.parametrize("text", ["sections: [", "sections: []", "sections:\n  - pages: [README.md]\n"])
def test_a_navigation_of_another_form_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(WrongNavigation):
        navigation.load(_repository(tmp_path, docs__site__navigation_yaml=text))


def test_links_lead_to_pages_of_the_site_and_other_files_are_named(tmp_path: Path) -> None:
    text = (
        "See [jobs](jobs.md#a-job) and [the tests](../tests/x.py), [x.py](../tests/x.py), [all](../tests), [readme](../README.md), [web](https://a.example).\n"
        "- a\n- b\n```sh\n[x](gone.md)\n- c\n```\n"
    )
    root = _repository(tmp_path, docs__a_md=text, docs__jobs_md="# A job", README_md="# Home", tests__x_py="")
    pages.write(root, ["docs/a.md", "docs/jobs.md", "README.md"], tmp_path / "site")
    assert (tmp_path / "site/a.md").read_text(encoding="utf-8") == (
        "See [jobs](jobs.md#a-job) and the tests (`tests/x.py`), `tests/x.py`, all (`tests/`), [readme](index.md), [web](https://a.example).\n"
        "\n- a\n- b\n```sh\n[x](gone.md)\n- c\n```\n"
    )


def test_lists_and_tables_are_parted_as_python_markdown_needs_it(tmp_path: Path) -> None:
    root = _repository(tmp_path, docs__a_md="Text\n| a |\n|---|\n\n- a\n  more\n- b\n\n  | c |\n  |---|\n\n  end\n- d\n- e\n")
    pages.write(root, ["docs/a.md"], tmp_path / "site")
    expected = "Text\n\n| a |\n|---|\n\n- a\n    more\n- b\n\n    | c |\n    |---|\n\n    end\n\n- d\n- e\n"
    assert (tmp_path / "site/a.md").read_text(encoding="utf-8") == expected


def test_a_link_to_no_file_is_a_fault_with_its_line(tmp_path: Path) -> None:
    root = _repository(tmp_path, docs__a_md="# A\n```sh\nx\n```\n\n[b](b.md)\n[out](../../a.md)\n")
    with pytest.raises(Faults) as caught:
        pages.write(root, ["docs/a.md"], tmp_path / "site")
    assert _faults(caught.value) == [(DeadLink, "b.md", "docs/a.md:6"), (DeadLink, "../../a.md", "docs/a.md:7")]


def test_dead_links_and_foreign_assets_of_a_built_site_are_faults(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b/index.html").write_text('<p id="here"></p><a href="../a.html#there">a</a>', encoding="utf-8")
    links = '<a href="b/#here"></a><a href="https://a.example/"></a><a href="b/#gone"></a>'
    assets = '<script src="https://a.example/x.js"></script><link href="none.css"><img src="//a.example/x.png">'
    (tmp_path / "a.html").write_text(f"<p id=there></p>\n{links}\n{assets}", encoding="utf-8")
    (tmp_path / "x.css").write_text("@font-face { src: url(https://a.example/f.woff) }", encoding="utf-8")
    assert [(type(fault), fault.path, str(fault.at)) for fault in BuiltSite(tmp_path).faults()] == [
        (DeadLink, "b/#gone", "a.html:2"),
        (ExternalAsset, "https://a.example/x.js", "a.html:3"),
        (DeadLink, "none.css", "a.html:3"),
        (ExternalAsset, "//a.example/x.png", "a.html:3"),
        (ExternalAsset, "https://a.example/f.woff", "x.css"),
    ]


def test_a_wrong_option_is_an_error_with_its_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--sevre"]) == 2
    assert "error[TOOL-021]" in capsys.readouterr().err


@pytest.mark.emulated
def test_the_site_is_built_without_dead_links_or_foreign_assets_and_can_be_searched(tmp_path: Path) -> None:
    html = build(ROOT, tmp_path)
    listed = [page for section in navigation.load(ROOT) for page in section.all_pages()]
    assert [page for page in listed if not (html / pages.site_path(page)).with_suffix(".html").is_file()] == []
    index = (html / "search.json").read_text(encoding="utf-8")
    assert "SIZ-040" in index and "decisions/0004-watermark.html" in index
    home = (html / "index.html").read_text(encoding="utf-8")
    assert 'src="worker.js"' in home and "<table>" in home
    # Lists and tables of the Markdown that stayed text would show their marks.
    left = [page.name for page in html.rglob("*.html") if re.search(r"<p>[^<]*\n(- |\|--)", page.read_text(encoding="utf-8"))]
    assert left == []


@pytest.mark.emulated
def test_a_dead_anchor_stops_the_build(tmp_path: Path) -> None:
    root = _repository(
        tmp_path / "repository",
        README_md="# Home\n[there](docs/a.md#there) [gone](docs/a.md#gone)\n",
        docs__a_md="# A\n## There\n",
        docs__site__navigation_yaml="sections:\n  - title: A\n    pages: [README.md, docs/a.md]\n",
    )
    for path in ("docs/site/extra.css", "docs/site/worker.js", "requirements"):
        (root / path).symlink_to(ROOT / path)
    with pytest.raises(PenstockError, match="anchor does not exist") as caught:
        build(root, tmp_path / "site")
    assert {fault.code for fault in caught.value.errors} <= {"SITE-002", "SITE-004"}


def test_the_command_says_what_it_does() -> None:
    said = subprocess.run([ROOT / "scripts/docs", "--help"], capture_output=True, text=True, timeout=120, check=True).stdout
    assert "--serve" in said
