"""What an emulated environment is made of, before anything is started."""

from __future__ import annotations

import subprocess

from penstock.infra.environment_file import load
from penstock.infra.parts.observability import OpenSearch, OpenSearchDomain
from penstock.scripts.local.emulated_environment import carried, exports


def test_an_environment_without_a_bucket_for_its_state_gets_one_and_keeps_its_own_otherwise() -> None:
    local = load("local")
    state = carried(local).spec.state
    assert state is not None and state.bucket == "penstock-local-state"
    assert carried(carried(local)).spec.state == state


def test_a_search_domain_is_left_out_because_no_emulator_carries_one() -> None:
    production = load("production")
    observability = production.spec.observability.model_copy(update={"open_search": OpenSearch(domain=OpenSearchDomain())})
    assert carried(production.with_spec(observability=observability)).spec.observability.open_search is None


def test_a_shell_reads_back_the_variables_that_are_exported() -> None:
    variables = {"ONE": 'it\'s a "desk" $HOME', "TWO": "line one\nline two"}
    printed = subprocess.run(
        ["bash", "-c", f'{exports(variables)}printf "%s|%s" "$ONE" "$TWO"'], capture_output=True, text=True, check=True, timeout=30
    ).stdout
    assert printed == "|".join(variables.values())
