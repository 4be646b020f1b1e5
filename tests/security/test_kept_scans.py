from __future__ import annotations

from pathlib import Path

from penstock.scripts.installation.cache import Cache
from penstock.scripts.security import gate
from penstock.scripts.security.finding import Finding
from penstock.scripts.security.kept_scans import KeptScans
from penstock.scripts.security.parts import of_image
from penstock.scripts.security.references import References

PART = of_image("FROM scratch\n")
FOUND = (Finding(rule="CKV_DOCKER_2", path="Dockerfile", says="HEALTHCHECK"),)


def test_a_scan_is_kept_for_the_part_as_it_was(tmp_path: Path) -> None:
    kept = KeptScans(Cache(tmp_path))
    assert kept.find(PART) is None
    kept.keep(PART, FOUND)
    assert KeptScans(Cache(tmp_path)).find(PART) == FOUND
    assert kept.find(of_image("FROM scratch\nUSER root\n")) is None
    assert kept.find(PART._replace(name="another")) is None


def test_a_damaged_scan_is_not_used(tmp_path: Path) -> None:
    kept = KeptScans(Cache(tmp_path))
    kept.keep(PART, FOUND)
    (file,) = kept.folder.glob("*.json")
    file.write_text("{", encoding="utf-8")
    assert kept.find(PART) is None


def test_findings_of_a_kept_scan_count_as_those_of_a_new_one(tmp_path: Path) -> None:
    kept = KeptScans(Cache(tmp_path / "cache"))
    kept.keep(PART, FOUND)
    examined = gate.examine([PART], [], References([]), tmp_path, kept=kept)
    assert [(finding.rule, finding.digest) for finding in examined.findings] == [("CKV_DOCKER_2", PART.digests["Dockerfile"])]
    assert (examined.kept, examined.seen, examined.expected) == (("Dockerfile",), 0, 0)
