"""A job of a local run: its spec, its plan, its input and its expectation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from penstock.jobs.spec import SpecFile, app_module
from penstock.scripts.installation.app_packages import InstalledPackages
from penstock.scripts.local.input import Expect, Generator
from penstock.sizing.planned import Plan


@dataclass(frozen=True)
class Job:
    """A job before it runs.

    Args:
        spec: its spec.
        plan: what it needs.
        app_path: folders with its modules.
        generators: topic -> generator of its records.
        expect: computes the expected output; None if the spec has none.
        packages: the app's own, installed.
    """

    spec: SpecFile
    plan: Plan
    app_path: tuple[Path, ...]
    generators: Mapping[str, Generator]
    expect: Expect | None
    packages: InstalledPackages = field(default_factory=InstalledPackages)

    @property
    def name(self) -> str:
        """The job's name."""
        return self.spec.job.metadata.name

    @property
    def changes_row_counts(self) -> bool:
        """Whether its app makes fewer rows of many, or later ones."""
        path = app_module.find(self.spec.job.spec.app, self.spec.path.parent, self.app_path)
        return app_module.read(path).changes_row_counts
