"""``penstock size --from-flink``: a FlinkDeployment's job spec, with Flink's sizing and Spark's side by side; or those of all jobs of a
session cluster, with the session of an environment that replaces it.

No app is read: it does not exist yet.
"""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from penstock.jobs.flink.conversion import Conversion, convert
from penstock.jobs.flink.session import SessionConversion, convert_session, documents, is_session
from penstock.scripts.cli.output import as_text
from penstock.scripts.errors import SpecNotWritten
from penstock.scripts.render import table as tables
from penstock.scripts.render.screen import Screen, screen_of
from penstock.scripts.render.table import Column, Styled
from penstock.sizing.errors import Infeasible
from penstock.sizing.flink.comparison import Row, compare
from penstock.sizing.flink.session_comparison import compare_session
from penstock.sizing.plan import plan
from penstock.sizing.planned import SCHEMA_VERSION, Plan
from penstock.sizing.units import MIB, cpu_text
from penstock.sizing.violation import Violation

_HEADINGS = {"session": "session", "job": "job", "task": "TaskManager / executor", "control": "JobManager / driver"}
_WIDTH = 120
# No job's name has a dot.
_ENVIRONMENT = "environment.part.yaml"


def run(paths: Sequence[Path], output: str, out: Path | None = None) -> int:
    """Prints the comparison and the spec, or those of a session.

    Args:
        paths: of the FlinkDeployment; or of a session cluster and all its FlinkSessionJobs, in one file or several.
        output: ``table`` for both, ``yaml`` for the spec alone, ``json`` for both with the notes.
        out: a file that the spec is also written to; of a session a folder for all of them.

    Returns:
        0, or 3 if Spark's plan is infeasible; everything is printed anyway.

    Raises:
        PenstockError: as `penstock.jobs.flink.conversion.convert` and `penstock.jobs.flink.session.convert_session`; USE-030 for what
            cannot be written.
    """
    given = documents(paths)
    if is_session(given):
        return _run_session(convert_session(given), output, out)
    return _run_job(convert(given[0]), output, out)


def _run_job(made: Conversion, output: str, out: Path | None) -> int:
    """Prints the comparison and the spec.

    Args:
        made: of the FlinkDeployment.
        output: as of `run`.
        out: a file that the spec is also written to.

    Returns:
        0, or 3 if Spark's plan is infeasible; everything is printed anyway.

    Raises:
        PenstockError: USE-030 for a spec that cannot be written.
    """
    planned = plan(made.targets)
    rows = compare(made.flink, planned, _trigger_ms(made))
    if out is not None:
        _write(out, made.text)
    if output == "json":
        sys.stdout.write(as_text(_document(made, planned, rows), output))
    else:
        sys.stdout.write(made.text if output == "yaml" else f"{table(made, rows, screen_of(sys.stdout, os.environ))}\n{made.text}")
    sys.stdout.flush()
    if output != "json":
        for violation in planned.violations:
            print(violation.render(), file=sys.stderr)
    return 0 if planned.feasible else Infeasible.exit_code


def _run_session(made: SessionConversion, output: str, out: Path | None) -> int:
    triggers = {job.flink.name: _trigger_ms(job) for job in made.jobs}
    rows = compare_session([job.flink for job in made.jobs], made.task_managers, made.plans, made.plan, triggers)
    environment = _environment(made)
    if out is not None:
        _write_all(out, {**{f"{job.flink.name}.yaml": job.text for job in made.jobs}, _ENVIRONMENT: environment})
    violations = [*(one for planned in made.plans.values() for one in planned.violations), *made.plan.violations]
    if output == "json":
        sys.stdout.write(as_text(_session_document(made, rows, violations), output))
    else:
        specs = "---\n".join([*(job.text for job in made.jobs), environment])
        screen = screen_of(sys.stdout, os.environ)
        sys.stdout.write(specs if output == "yaml" else f"{_session_table(made, rows, screen)}\n{specs}")
    sys.stdout.flush()
    if output != "json":
        for violation in violations:
            print(violation.render(), file=sys.stderr)
    return 0 if made.plan.feasible else Infeasible.exit_code


def _environment(made: SessionConversion) -> str:
    """What an environment gets in its spec, as YAML."""
    names = [job.flink.name for job in made.jobs]
    part = {"jobs": [f"{name}.yaml" for name in names], "sessions": [{"name": made.name, "jobs": names}]}
    text = yaml.safe_dump({"spec": part}, sort_keys=False, default_flow_style=None, width=_WIDTH)
    return (
        f"# Part of the environment: its jobs, with paths as seen from its file, and the session that replaces the session cluster.\n{text}"
    )


def _session_document(made: SessionConversion, rows: Sequence[Row], violations: Sequence[Violation]) -> dict[str, Any]:
    return {
        "schemaVersion": SCHEMA_VERSION,
        "specs": [job.document for job in made.jobs],
        "environment": yaml.safe_load(_environment(made)),
        "comparison": [row.model_dump(mode="json") for row in rows],
        "notes": {job.flink.name: _notes(job) for job in made.jobs},
        "session": made.plan.model_dump(mode="json", by_alias=True),
        "feasible": made.plan.feasible,
        "violations": [violation.model_dump(mode="json") for violation in violations],
    }


def _session_table(made: SessionConversion, rows: Sequence[Row], screen: Screen) -> str:
    flink = made.jobs[0].flink
    managers = f"{made.task_managers} TaskManagers x {flink.slots} slots"
    return _table(f"session {made.name}: {managers} in Flink, executors of the same size in Spark", rows, screen)


def table(made: Conversion, rows: Sequence[Row], screen: Screen) -> str:
    """The comparison as text."""
    flink = made.flink
    head = f"{flink.name}: {flink.task_managers} TaskManagers x {flink.slots} slots in Flink, executors of the same size in Spark"
    return _table(head, rows, screen)


def _table(head: str, rows: Sequence[Row], screen: Screen) -> str:
    columns = (Column(), Column("Flink", right=True), Column("Spark", right=True), Column("note", wraps=True))
    groups = {heading: [row for row in rows if row.of == of] for of, heading in _HEADINGS.items()}
    cells = [cell for heading, group in groups.items() if group for cell in _section(heading, group)]
    return "\n".join([*textwrap.wrap(head, screen.prose), "", *tables.table(columns, cells[:-1], screen)]) + "\n"


def _section(heading: str, rows: Sequence[Row]) -> Iterator[tables.Row]:
    yield Styled(heading, "bold"), "", "", ""
    yield from ((f"  {row.name}", _shown(row.flink, row.unit), _shown(row.spark, row.unit), row.note) for row in rows)
    yield "", "", "", ""


def _shown(value: int | None, unit: str) -> str:
    if value is None:
        return "-"
    if unit == "bytes":
        return f"{round(value / MIB):,} MiB"
    if unit == "millicores":
        return cpu_text(value)
    return f"{value / 1000:g} s" if unit == "ms" else f"{value:,}"


def _trigger_ms(made: Conversion) -> int | None:
    trigger = made.job.spec.trigger
    return trigger if isinstance(trigger, int) else None


def _document(made: Conversion, planned: Plan, rows: Sequence[Row]) -> dict[str, Any]:
    return {
        "schemaVersion": SCHEMA_VERSION,
        "spec": made.document,
        "comparison": [row.model_dump(mode="json") for row in rows],
        "notes": _notes(made),
        "feasible": planned.feasible,
        "violations": [violation.model_dump(mode="json") for violation in planned.violations],
    }


def _notes(made: Conversion) -> list[dict[str, Any]]:
    return [note.model_dump(mode="json", exclude=None if note.file else {"file"}) for note in made.notes]


def _write(out: Path, text: str) -> None:
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SpecNotWritten(path=str(out), need=error.strerror or "a writable file", fix="specify another file") from None


def _write_all(folder: Path, files: Mapping[str, str]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        need = f"a folder for the specs of all jobs: {error.strerror}"
        raise SpecNotWritten(path=str(folder), need=need, fix="specify another folder") from None
    for name, text in files.items():
        _write(folder / name, text)
