from __future__ import annotations

import argparse

import pytest

from penstock.infra.errors import NoEnvironment
from penstock.scripts.cli import (
    bootstrap,
    cost,
    deploy,
    destroy,
    doctor,
    inspect,
    lint,
    logs,
    move,
    place,
    redeploy,
    report,
    resume,
    rewind,
    run,
    savepoint,
    scan,
    size,
    status,
    stop,
    synth,
    topics,
    up,
    upgrade,
)
from penstock.scripts.cli.environment_argument import chosen, chosen_or_none, take_stacks
from penstock.scripts.errors import WrongUsage

# What a command line needs beside the environment.
JOB = ["--job", "clicks"]
SPEC = ["a.yaml"]
WORDS = {
    size: SPEC,
    cost: SPEC,
    place: ["a.json"],
    report: SPEC,
    up: SPEC,
    topics: ["plan"],
    stop: JOB,
    resume: JOB,
    run: JOB,
    rewind: [*JOB, "--by", "1h"],
    savepoint: ["list", *JOB],
    upgrade: ["check"],
    inspect: JOB,
    logs: JOB,
    move: JOB,
    redeploy: JOB,
}
ON_AWS = (
    *(bootstrap, deploy, destroy, doctor, inspect, logs, move, redeploy, resume, rewind, run, savepoint, scan, status, stop, synth, topics),
    upgrade,
)


@pytest.fixture(autouse=True)
def _no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PENSTOCK_ENVIRONMENT", raising=False)


def parsed(verb: object, *words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    verb.add_arguments(parser)  # type: ignore[attr-defined]
    return parser.parse_args([*WORDS.get(verb, []), *words])  # type: ignore[call-overload]


@pytest.mark.parametrize("verb", [*ON_AWS, cost, lint, place, report, size, up])
@pytest.mark.parametrize("option", ["-e", "--environment"])
def test_every_verb_that_takes_an_environment_takes_it_as_an_option(verb: object, option: str) -> None:
    given = parsed(verb, option, "dev").environment
    assert given == (["dev"] if verb is cost else "dev")


@pytest.mark.parametrize("verb", ON_AWS)
@pytest.mark.parametrize("words", [["dev"], ["-e", "dev"], ["dev", "-e", "dev"], ["-e", "dev", "dev"]])
def test_what_works_on_aws_takes_the_environment_as_argument_and_as_option(verb: object, words: list[str]) -> None:
    assert chosen(parsed(verb, *words)).name == "dev"


@pytest.mark.parametrize("verb", ON_AWS)
def test_an_argument_and_an_option_that_differ_are_wrong_usage(verb: object) -> None:
    arguments = parsed(verb, "dev", "-e", "production")
    if verb is deploy:
        take_stacks(arguments)
    with pytest.raises(WrongUsage) as raised:
        chosen(arguments)
    assert raised.value.given == "environments dev and production"


FORMS = (["dev", "network", "kafka"], ["-e", "dev", "network", "kafka"], ["-e", "dev", "dev", "network", "kafka"])


@pytest.mark.parametrize("words", FORMS)
def test_a_deploy_takes_stacks_beside_either_form(words: list[str]) -> None:
    arguments = parsed(deploy, *words)
    take_stacks(arguments)
    assert (chosen(arguments).name, arguments.stacks) == ("dev", ["network", "kafka"])


def test_without_a_name_the_variable_counts_and_without_both_it_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = parsed(synth)
    assert chosen_or_none(arguments) is None
    with pytest.raises(NoEnvironment) as raised:
        chosen(arguments)
    assert raised.value.fix == "--environment ENV, or export PENSTOCK_ENVIRONMENT"
    monkeypatch.setenv("PENSTOCK_ENVIRONMENT", "local")
    assert chosen(arguments).name == "local"
    assert chosen(parsed(synth, "dev")).name == "dev"
