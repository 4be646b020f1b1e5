"""A spec with the parallelism of an environment in its text."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.jobs.spec import SpecFile, load
from penstock.jobs.spec.errors import ParallelismNotOverridden
from penstock.jobs.spec.overriding import load_overridden, overridden
from penstock.jobs.spec.reading import ParallelismOverride
from penstock.sizing.errors import Place

REST = """\
  executor: {slots: 2, memory: 4g}
  sources: {a: {kafka: {topic: a}, time: {field: at, outOfOrderness: 10s}}}
  sinks: {out: {files: {path: out}}}
"""
HEAD = "apiVersion: penstock/v1\nkind: StreamingJob\nmetadata: {name: clicks}\nspec:\n"
LOAD = """\
  app: app
  load:
    eventsPerSecond: 1000
    # of the peak
    eventBytes: 200
    eventsPerSlot: 500

"""
FLOW = "  app: app\n  load: {eventsPerSecond: 1000, eventBytes: 200,\n    eventsPerSlot: 500}\n"
GIVEN = ParallelismOverride(value=3, at=Place(file="dev.yaml", line=9), path="spec.jobs[0].parallelism")


def spec(folder: Path, text: str) -> SpecFile:
    path = folder / "clicks.yaml"
    path.write_text(text, encoding="utf-8")
    return load(path)


@pytest.mark.parametrize(
    ("text", "replaced"),
    [
        (f"{HEAD}  parallelism: 10 # as in Flink\n  app: app\n{REST}", "parallelism: 10"),
        (f"{HEAD}  app: app\n{REST}  parallelism: 10", "parallelism: 10"),
        (f"{HEAD}  app: app\n  parallelism:\n    10\n{REST}", "parallelism: 10"),
        (f"{HEAD}{LOAD}{REST}", "load"),
        (f"{HEAD}{REST}{LOAD.rstrip()}", "load"),
        (f"{HEAD}{LOAD.replace('load:', 'load: # below')}{REST}", "load"),
        (f"{HEAD}{FLOW}{REST}", "load"),
        (f"# \N{EARTH GLOBE EUROPE-AFRICA}\r\n{HEAD}{LOAD}{REST}".replace("\n", "\r\n").replace("\r\r", "\r"), "load"),
        (
            f'{HEAD.rstrip()} {{app: app, "parallelism": 10, executor: {{memory: 4g}}, sinks: {{out: {{files: {{path: out}}}}}}}}',
            "parallelism: 10",
        ),
    ],
)
def test_the_number_takes_the_place_of_the_specs_own_and_every_other_field_stays_on_its_line(
    tmp_path: Path, text: str, replaced: str
) -> None:
    before = spec(tmp_path, text)
    after = overridden(before, GIVEN)
    assert (after.job.spec.parallelism, after.job.spec.load) == (3, None)
    assert after.override == GIVEN.model_copy(update={"replaced": replaced})
    assert {key: value for key, value in after.document.data["spec"].items() if key not in ("parallelism", "load")} == {
        key: value for key, value in before.document.data["spec"].items() if key not in ("parallelism", "load")
    }
    for path in (("spec", "executor"), ("spec", "app"), ("spec", "sinks", "out")):
        assert after.document.place(path).line == before.document.place(path).line
    # The text is what a driver reads.
    (tmp_path / "job.yaml").write_text(after.document.text, encoding="utf-8")
    assert load(tmp_path / "job.yaml").job == after.job


def test_comments_of_a_spec_with_a_parallelism_stay(tmp_path: Path) -> None:
    text = f"# ours\n{HEAD}  app: app # here\n  parallelism: 10 # as in Flink\n{REST}"
    assert overridden(spec(tmp_path, text), GIVEN).document.text == text.replace("10 #", "3 #")


def test_a_spec_whose_load_decides_the_memory_names_what_it_needs_at_the_environments_line(tmp_path: Path) -> None:
    read = spec(tmp_path, f"{HEAD}{LOAD}{REST.replace(', memory: 4g', '')}")
    with pytest.raises(ParallelismNotOverridden) as caught:
        overridden(read, GIVEN)
    fault = caught.value
    assert (fault.at, fault.path, fault.given) == (GIVEN.at, GIVEN.path, "3")
    assert fault.need.startswith("a spec with executor.memory or executor.heap: ")


def test_a_number_to_which_other_fields_refer_is_refused(tmp_path: Path) -> None:
    stages = REST.replace("  sinks", "  stages: {stateful: *tasks}\n  sinks")
    for number in ("&tasks 10", "&tasks\n    10"):
        with pytest.raises(ParallelismNotOverridden, match=r"by an alias"):
            overridden(spec(tmp_path, f"{HEAD}  app: app\n  parallelism: {number}\n{stages}"), GIVEN)


def test_a_number_that_is_an_alias_is_refused(tmp_path: Path) -> None:
    text = f"{HEAD}  app: app\n  stages: {{source: &tasks 10}}\n  parallelism: *tasks\n{REST}"
    with pytest.raises(ParallelismNotOverridden):
        overridden(spec(tmp_path, text), GIVEN)


def test_a_spec_goes_to_another_process_with_its_override(tmp_path: Path) -> None:
    sent = overridden(spec(tmp_path, f"{HEAD}{LOAD}{REST}"), GIVEN)
    received = SpecFile.model_validate_json(sent.model_dump_json())
    assert (received, received.overriding_parallelism) == (sent, 3)


def test_a_driver_reads_a_spec_with_the_number_that_it_is_given(tmp_path: Path) -> None:
    path = spec(tmp_path, f"{HEAD}  app: app\n  parallelism: 10\n{REST}").path
    assert load_overridden(path, None).job.spec.parallelism == 10
    assert load_overridden(path, 2).job.spec.parallelism == 2
