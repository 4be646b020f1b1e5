"""An environment's AWS stacks on emulators, to rehearse a deploy and for tests."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from types import TracebackType

from penstock.infra.deployable import deployable_plans
from penstock.infra.environment import Environment
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.emulation.localstack import LocalStack
from penstock.scripts.local.emulated_environment import carried
from penstock.scripts.local.existing_account import prepared
from penstock.scripts.local.rehearsed_stacks import Progress, RehearsedStacks
from penstock.scripts.provisioning.aws_access import AwsAccess
from penstock.scripts.provisioning.stacks import synthesized


class EmulatedStacks:
    """The AWS stacks of an environment, on emulators that end with this object. Terraform's state is in local files.

    Args:
        environment: the environment; its endpoints are replaced by the emulators'.
        folder: an empty folder for data, logs, stacks and states.
        localstack: whether what LocalStack's free edition has is LocalStack's; the rest is moto's.
        progress: called with a line for each finished step, in several threads.
    """

    def __init__(self, environment: Environment, *, folder: Path, localstack: bool, progress: Progress = lambda line: None) -> None:
        self._asked = carried(environment).with_spec(state=None)
        self._folder = folder
        self._with_localstack = localstack
        self._progress = progress
        self._held = ExitStack()

    def __enter__(self) -> EmulatedStacks:
        try:
            self._start()
        except BaseException:
            self._held.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._held.close()

    def _start(self) -> None:
        spec = self._asked.spec
        self.localstack: LocalStack | None = None
        services: dict[str, str] = {}
        if self._with_localstack:
            data, log = self._folder / "localstack", self._folder / "localstack.log"
            self.localstack = self._held.enter_context(LocalStack(folder=data, log=log, progress=self._progress))
            services = self.localstack.services
        moto = EmulatedAws(log=self._folder / "aws.log", account=spec.account, region=spec.region, neighbours=services)
        self.moto = self._held.enter_context(moto)
        self.environment = prepared(self._asked.at(self.moto.endpoint, services))
        self.access = AwsAccess(self.environment)

    @cached_property
    def stacks(self) -> RehearsedStacks:
        """The synthesized stacks.

        Raises:
            PenstockError: whatever is wrong with the environment.
        """
        folder, planned = self._folder / "stacks", deployable_plans(self.environment)
        stacks = synthesized(self.environment, folder, planned=planned, state=self._folder / "state", base=_without_aws(os.environ))
        return RehearsedStacks(stacks, self.access, self._progress)


def _without_aws(base: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in base.items() if not name.startswith("AWS_")}
