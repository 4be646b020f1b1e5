"""An environment on this machine that stays up: its AWS stacks applied to an emulated AWS, as a deploy applies them, and a broker."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from penstock.infra.deployable import deployable_plans
from penstock.infra.environment import Environment, State
from penstock.infra.environment_file import ENVIRONMENT_VARIABLE
from penstock.scripts.emulation.emulated_aws import EmulatedAws
from penstock.scripts.local.existing_account import prepared
from penstock.scripts.local.kafka_broker import KafkaBroker
from penstock.scripts.progress import Steps
from penstock.scripts.provisioning import state_bucket, workplace
from penstock.scripts.provisioning.aws_access import AwsAccess
from penstock.scripts.provisioning.deployment import Deployment, outputs
from penstock.scripts.provisioning.stacks import synthesized


class EmulatedEnvironment:
    """An emulated AWS and a broker, which end with this object.

    Args:
        environment: the environment; its endpoints are replaced by the emulator's.
        folder: an empty folder for data, logs and stacks.
        aws_port: of the emulated AWS, 0 for a free one.
        kafka_port: of the broker, 0 for a free one.
    """

    def __init__(self, environment: Environment, *, folder: Path, aws_port: int = 0, kafka_port: int = 0) -> None:
        self._asked = carried(environment)
        self._folder = folder
        self._aws_port = aws_port
        self._held = ExitStack()
        self.kafka = KafkaBroker(folder=folder / "kafka", log=folder / "kafka.log", port=kafka_port)

    def __enter__(self) -> EmulatedEnvironment:
        try:
            self._held.callback(self.kafka.stop)
            self.kafka.start()
            spec = self._asked.spec
            # The emulated MSK returns the address of this broker.
            self.aws = self._held.enter_context(
                EmulatedAws(
                    log=self._folder / "aws.log",
                    port=self._aws_port,
                    account=spec.account,
                    region=spec.region,
                    brokers=self.kafka.address,
                )
            )
            # With the emulator's endpoint, and the ids of a VPC that exists in it.
            self.environment = prepared(self._asked.at(self.aws.endpoint))
        except BaseException:
            self._held.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._held.close()

    def variables(self, file: Path) -> dict[str, str]:
        """Variables that direct the AWS CLI, boto3, Terraform and Penstock to this environment.

        Args:
            file: where `environment` is written for Penstock's verbs and cdktf.
        """
        own = {
            ENVIRONMENT_VARIABLE: str(file),
            workplace.FOLDER_VARIABLE: str((self._folder / "deploys").absolute()),
            "KAFKA_BOOTSTRAP_SERVERS": self.kafka.address,
        }
        return {**self.aws.environment(), **own}

    def apply(self, steps: Steps) -> Mapping[str, Mapping[str, Any]]:
        """Applies all stacks, with their state in the emulated S3.

        Args:
            steps: receives a line per finished step.

        Returns:
            The outputs by stack.

        Raises:
            PenstockError: whatever is wrong with the environment, this machine, the plan or the apply.
        """
        environment = self.environment
        access = AwsAccess(environment, os.environ)
        state_bucket.bootstrap(access)
        with steps.at("synth", "synthesizing the stacks with cdktf") as step:
            stacks = synthesized(environment, self._folder / "stacks", planned=deployable_plans(environment))
            step.said = f"{len(stacks)} stacks"
        deployment = Deployment(stacks, access, steps)
        deployment.plan()
        deployment.apply()
        return outputs(deployment)

    def check(self) -> None:
        """Returns while the emulator and the broker run.

        Raises:
            EmulatorDied: RUN-003.
            BrokerDied: RUN-010.
        """
        self.aws.check()
        self.kafka.check()


def carried(environment: Environment) -> Environment:
    """An environment as emulators carry it: with a bucket for its state, and without an OpenSearch domain.

    Args:
        environment: as its file has it.
    """
    spec = environment.spec
    state = spec.state or State(bucket=f"{environment.prefix}-state")
    # The provider waits ten minutes for a domain on any emulator.
    observability = spec.observability.model_copy(update={"open_search": None})
    return environment.with_spec(state=state, observability=observability)


def exports(variables: Mapping[str, str]) -> str:
    """Variables as lines that a shell sources.

    Args:
        variables: name -> value.
    """
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())
