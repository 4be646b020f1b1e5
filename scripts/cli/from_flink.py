"""``penstock size --from-flink``: a FlinkDeployment's job spec, with Flink's sizing and Spark's side by side.

No app is read: it does not exist yet.
"""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from penstock.jobs.flink.conversion import Conversion, convert
from penstock.scripts.cli.output import as_text
from penstock.scripts.errors import SpecNotWritten
from penstock.scripts.render import table as tables
from penstock.scripts.render.screen import Screen, screen_of
from penstock.scripts.render.table import Column, Styled
from penstock.sizing.errors import Infeasible
from penstock.sizing.flink.comparison import Row, compare
from penstock.sizing.plan import plan
from penstock.sizing.planned import SCHEMA_VERSION, Plan
from penstock.sizing.units import MIB, cpu_text

_HEADINGS = {"job": "job", "task": "TaskManager / executor", "control": "JobManager / driver"}


def run(path: Path, output: str, out: Path | None = None) -> int:
    """Prints the comparison and the spec.

    Args:
        path: of the FlinkDeployment.
        output: ``table`` for both, ``yaml`` for the spec alone, ``json`` for both with the notes.
        out: a file that the spec is also written to.

    Returns:
        0, or 3 if Spark's plan is infeasible; everything is printed anyway.

    Raises:
        PenstockError: as `penstock.jobs.flink.conversion.convert`; USE-030 for a spec that cannot be written.
    """
    made = convert(path)
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


def table(made: Conversion, rows: Sequence[Row], screen: Screen) -> str:
    """The comparison as text."""
    flink = made.flink
    head = f"{flink.name}: {flink.task_managers} TaskManagers x {flink.slots} slots in Flink, executors of the same size in Spark"
    columns = (Column(), Column("Flink", right=True), Column("Spark", right=True), Column("note", wraps=True))
    cells = [cell for of, heading in _HEADINGS.items() for cell in _section(heading, [row for row in rows if row.of == of])]
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
        "notes": [note.model_dump(mode="json") for note in made.notes],
        "feasible": planned.feasible,
        "violations": [violation.model_dump(mode="json") for violation in planned.violations],
    }


def _write(out: Path, text: str) -> None:
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SpecNotWritten(path=str(out), need=error.strerror or "a writable file", fix="specify another file") from None
