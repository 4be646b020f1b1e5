"""What is wrong in a team's code, from exceptions and from Spark's messages about tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.jobs.driver.root_cause import OwnCode, RootCause, of_exception, of_message
from penstock.sizing.errors import Place

OWN = OwnCode((Path("/team/jobs"),), Path("/opt/venv/lib/python3.11/site-packages/team/shipped.py"))
# As PySpark 4.3.0 words it, cut.
MESSAGE = """An error occurred while calling o224.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 17.0 failed 4 times
Caused by: org.apache.spark.api.python.PythonException: An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "/opt/venv/lib/python3.11/site-packages/pyspark/worker.py", line 1240, in main
    process()
  File "/team/jobs/clicks.py", line 12, in shares
    return share(amount)
  File "/team/jobs/shares.py", line 3, in share
    return 1 / amount
           ~~^~~~~~~~
ZeroDivisionError: division by zero

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:600)
\t... 1 more
"""


def test_an_exception_of_a_worker_has_the_place_of_the_teams_code_that_it_came_through_last() -> None:
    expected = RootCause("ZeroDivisionError: division by zero", Place(file="/team/jobs/shares.py", line=3))
    assert of_message(MESSAGE, OWN) == expected


def test_a_traceback_of_sparks_own_on_the_drivers_side_is_not_taken_for_the_cause() -> None:
    driver = """Traceback (most recent call last):
  File "/opt/venv/lib/python3.11/site-packages/py4j/clientserver.py", line 642, in _call_proxy
    return_value = getattr(self.pool[obj_id], method)(*params)
py4j.protocol.Py4JJavaError: """
    assert of_message(driver + MESSAGE, OWN) == of_message(MESSAGE, OWN)


CAUSE = """Traceback (most recent call last):
  File "/team/jobs/limits.py", line 7, in limit
    return limits[user]
           ~~~~~~^^^^^^
KeyError: 'ann'

"""
DIRECT = "The above exception was the direct cause of the following exception:\n\n"
HANDLING = "During handling of the above exception, another exception occurred:\n\n"


@pytest.mark.parametrize("between", [DIRECT, HANDLING])
def test_of_an_exception_and_its_cause_the_exception_is_named(between: str) -> None:
    assert of_message(MESSAGE.replace("Traceback", CAUSE + between + "Traceback", 1), OWN) == of_message(MESSAGE, OWN)


def test_of_an_exception_that_others_raised_for_one_of_the_teams_the_teams_is_named() -> None:
    others = MESSAGE.replace("/team/jobs/", "/others/")
    expected = RootCause("KeyError: 'ann'", Place(file="/team/jobs/limits.py", line=7))
    assert of_message(others.replace("Traceback", CAUSE + DIRECT + "Traceback", 1), OWN) == expected


def test_an_exception_that_no_code_of_the_teams_has_seen_has_no_place() -> None:
    elsewhere = OwnCode((Path("/other"),))
    assert of_message(MESSAGE, elsewhere) == RootCause("ZeroDivisionError: division by zero")


def test_the_apps_module_is_the_teams_own_wherever_it_is_installed() -> None:
    installed = MESSAGE.replace("/team/jobs/shares.py", str(OWN.app))
    assert (cause := of_message(installed, OWN)) is not None
    assert cause.at == Place(file=str(OWN.app), line=3)


def test_a_failure_of_java_is_its_last_cause() -> None:
    message = """Job aborted.
Caused by: java.io.IOException: while it writes
\tat some.Where
Caused by: java.nio.file.FileSystemException: No space left on device
"""
    assert of_message(message, OWN) == RootCause("java.nio.file.FileSystemException: No space left on device")


@pytest.mark.parametrize("message", ["", "one line", "several\nlines"])
def test_a_message_without_a_cause_has_none(message: str) -> None:
    assert of_message(message, OWN) is None


def test_a_traceback_that_was_cut_has_no_more_than_its_place() -> None:
    cut = MESSAGE[: MESSAGE.index("ZeroDivisionError")]
    assert of_message(cut, OWN) == RootCause("an exception without a message", Place(file="/team/jobs/shares.py", line=3))


def test_an_exception_in_this_process_has_the_place_of_the_teams_code(tmp_path: Path) -> None:
    with pytest.raises(KeyError) as raised:
        exec(compile("\n\n{}['limits']", str(tmp_path / "app.py"), "exec"), {})
    expected = RootCause("KeyError: 'limits'", Place(file=str(tmp_path / "app.py"), line=3))
    assert of_exception(raised.value, OwnCode((tmp_path,))) == expected
    assert of_exception(raised.value, OWN).at is None


def test_a_file_that_is_no_python_is_the_place(tmp_path: Path) -> None:
    with pytest.raises(SyntaxError) as raised:
        compile("def build(job:", str(tmp_path / "app.py"), "exec")
    assert of_exception(raised.value, OwnCode((tmp_path,))).at == Place(file=str(tmp_path / "app.py"), line=1)


def test_files_of_penstock_are_nobodys_own(tmp_path: Path) -> None:
    """Its checkout may be the folder of a spec."""
    own = OwnCode((tmp_path,))
    assert own.has(str(tmp_path / "app.py"))
    assert not own.has(str(tmp_path / "penstock" / "jobs" / "job.py"))
    assert not own.has(str(tmp_path / ".venv" / "lib" / "python3.11" / "site-packages" / "app.py"))
    assert not own.has("<frozen importlib._bootstrap>")
