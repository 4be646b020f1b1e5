"""``penstock deploy``: plans all the stacks of an environment, shows the plan, asks, and applies them in order."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from penstock.infra.app_archive import is_of_the_image
from penstock.infra.deployable import deployable_plans
from penstock.infra.environment import Environment
from penstock.infra.plans import EnvironmentPlans
from penstock.jobs.storage.errors import BucketUnreachable
from penstock.scripts.cli import offline_changes
from penstock.scripts.cli.environment_argument import add_environment_argument, chosen, take_stacks
from penstock.scripts.cli.output import add_output_argument, as_text
from penstock.scripts.errors import CredentialsMissing, TerraformFailed, WrongUsage
from penstock.scripts.operations import changes_of_jobs, evidence, session_changes
from penstock.scripts.operations.evidence import Awaited, Evidence
from penstock.scripts.operations.job_changes import JobChanges, job_changes
from penstock.scripts.planning.app_path import add_app_path_argument, folders_of_apps
from penstock.scripts.process.interrupts import end_in_order
from penstock.scripts.progress import Steps
from penstock.scripts.provisioning import (
    boundary,
    changes_table,
    charts,
    deploy_rights,
    existing_cluster,
    existing_network,
    machine,
    state_bucket,
    workplace,
    zones,
)
from penstock.scripts.provisioning.aws_access import AwsAccess
from penstock.scripts.provisioning.confirmation import confirm
from penstock.scripts.provisioning.deployment import DeployedStack, Deployment, outputs, wanted
from penstock.scripts.provisioning.introduction import introduce
from penstock.scripts.provisioning.planned_changes import StackChanges
from penstock.scripts.provisioning.stacks import synthesized
from penstock.scripts.render.screen import screen_of
from penstock.sizing.errors import CheckFailed, PenstockError
from penstock.sizing.planned import SCHEMA_VERSION

# The stack of the jobs' releases; its module imports cdktf, which takes long.
_JOBS = "jobs-charts"
# How the names of the stacks of Helm releases end.
_CHARTS = "-charts"
# By which this machine's clock may be ahead of the API server's.
_CLOCKS = timedelta(minutes=2)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the verb."""
    add_environment_argument(parser)
    add_app_path_argument(parser)
    parser.add_argument("stacks", nargs="*", metavar="STACK", help="stacks to deploy, with their dependencies (default: all)")
    parser.add_argument("--yes", action="store_true", help="skip the confirmation prompt")
    without = "without AWS credentials, as with --offline"
    parser.add_argument("--plan-only", "--diff", action="store_true", help=f"show the plan and exit; {without}")
    parser.add_argument("--offline", action="store_true", help="with --plan-only: plan against an empty account, without calling AWS")
    parser.add_argument(
        "--allow-loss",
        action="append",
        default=[],
        metavar="STACK/ADDRESS",
        help="allow replacing or destroying this stateful resource; repeatable",
    )
    parser.add_argument("--unlock", metavar="ID", help="force-unlock a stale state lock of the named STACK first")
    parser.add_argument("--detach", action="store_true", help="do not wait until changed jobs have committed a micro-batch")
    parser.add_argument(
        "--wait-s",
        type=workplace.seconds,
        default=evidence.LIMIT_S,
        metavar="SECONDS",
        help=f"timeout for the micro-batches of changed jobs (default: {evidence.LIMIT_S:g})",
    )
    workplace.add_arguments(parser)
    add_output_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    """Deploys.

    Returns:
        0, or 1 if a changed job has committed nothing.

    Raises:
        PenstockError: whatever is wrong with the environment, this machine, the credentials, the plan or the apply.
    """
    end_in_order()
    take_stacks(arguments)
    environment = chosen(arguments)
    planned = deployable_plans(environment)
    steps = Steps()
    aws = AwsAccess(environment)
    if not _introduced(arguments, aws, steps):
        return offline_changes.show(arguments, environment, planned, steps)
    state_bucket.check(aws)
    zones.check(aws)
    boundary.check(aws)
    _check_charts(arguments, environment)
    existing_network.check(aws)
    existing_cluster.check(aws, [job.name for job in planned.jobs])
    if environment.existing_cluster is not None and not arguments.plan_only:
        # The client of Kubernetes takes long to import.
        from penstock.scripts.provisioning import shared_cluster

        shared_cluster.check(aws, list(planned.workloads))
    with workplace.held(workplace.folder_of(environment.name, arguments.out), "deploy") as folder:
        return _deploy(arguments, aws, planned, steps, folder)


def _check_charts(arguments: argparse.Namespace, environment: Environment) -> None:
    """That Helm finds its charts, unless none is deployed: a stack is deployed with those that it depends on."""
    if not arguments.stacks or any(stack.endswith(_CHARTS) for stack in arguments.stacks):
        charts.check(environment)


def _introduced(arguments: argparse.Namespace, aws: AwsAccess, steps: Steps) -> bool:
    """Whether the deploy uses AWS: a plan does without if it is asked to, or if there are no credentials.

    Raises:
        WrongUsage: USE-001, ``--offline`` for more than a plan.
        PenstockError: see `introduce`.
    """
    if arguments.offline:
        if not arguments.plan_only or arguments.unlock:
            raise WrongUsage(path="--offline", need="--plan-only, without --unlock", fix="penstock deploy ENV --plan-only --offline")
        return False
    try:
        introduce(aws.environment, aws, steps)
    except CredentialsMissing as error:
        # Ones that AWS refuses are an error: who has credentials wants to see what differs from the account.
        if not arguments.plan_only or arguments.unlock:
            raise
        steps.line("caller", f"no AWS credentials: {error.given}")
        return False
    return True


def _deploy(arguments: argparse.Namespace, aws: AwsAccess, plans: EnvironmentPlans, steps: Steps, folder: Path) -> int:
    environment = aws.environment
    with steps.at("synth", "synthesizing the stacks with cdktf") as step:
        stacks = wanted(synthesized(environment, folder, planned=plans), arguments.stacks)
        step.said = f"{len(stacks)} stacks"
    if any(stack.on_kubernetes for stack in stacks):
        machine.require("aws")
    options = {"limit_s": arguments.limit_s, "allowed_losses": arguments.allow_loss, "look_only": arguments.plan_only}
    deployment = Deployment(stacks, aws, steps, **options)
    if arguments.unlock:
        _unlock(deployment, arguments)
    deployment.plan()
    _check_rights(arguments, deployment, steps)
    changes = _changed_jobs(arguments, aws, plans, steps) if _JOBS in {stack.name for stack in stacks} else []
    if arguments.output == "table":
        _show(deployment, changes)
    done: Sequence[DeployedStack] = ()
    found: Sequence[Evidence] = ()
    if not arguments.plan_only and not deployment.nothing_to_do:
        if not arguments.yes:
            confirm(f"Apply this to {environment.name} in account {environment.spec.account}?", "yes", shown=arguments.output == "table")
        changed = _awaited(aws, plans, changes)
        done = _applied_in_order(deployment, arguments, changed, steps)
        found = _evidence(arguments, aws, changed, steps) if _JOBS in deployment.applied and not arguments.detach else []
    _print_result(arguments, deployment, done, changes, found)
    for one in found:
        if not one.well:
            print(one.error().render(), file=sys.stderr)
    return 0 if all(one.well for one in found) else CheckFailed.exit_code


def _check_rights(arguments: argparse.Namespace, deployment: Deployment, steps: Steps) -> None:
    """That the caller may create what is planned; a plan alone creates nothing."""
    if arguments.plan_only:
        return
    with steps.at("rights", "asking IAM what the caller may create") as step:
        step.said = deploy_rights.check(deployment.aws, deployment.aws.caller(), deployment.to_create())


def _show(deployment: Deployment, changes: Sequence[JobChanges]) -> None:
    screen = screen_of(sys.stdout, os.environ)
    sys.stdout.write("\n" + changes_table.render(deployment.planned, screen))
    if changes:
        sys.stdout.write("\n" + changes_of_jobs.rendered(changes, screen))
    if sessions := _sessions(deployment):
        sys.stdout.write("\n" + session_changes.rendered(sessions))
    sys.stdout.flush()


def _sessions(deployment: Deployment) -> list[session_changes.SessionChanges]:
    return session_changes.session_changes(one for one in deployment.planned.values() if isinstance(one, StackChanges))


def _awaited(aws: AwsAccess, plans: EnvironmentPlans, changes: Sequence[JobChanges]) -> list[Awaited]:
    """The changed jobs that are to show that they work, as they are before the apply."""
    specs = [job.spec for job in plans.jobs]
    bucket = aws.environment.spec.buckets.checkpoints
    archived = {job.name for session in plans.sessions for job in plans.jobs_of(session) if not is_of_the_image(job.spec)}
    return evidence.awaited(changes, specs, bucket, aws.client("s3"), archived) if changes else []


def _evidence(arguments: argparse.Namespace, aws: AwsAccess, jobs: Sequence[Awaited], steps: Steps) -> list[Evidence]:
    """What has become of the changed jobs, once each has committed a micro-batch or will not."""
    if not jobs:
        return []
    named = str(arguments.environment_argument or arguments.environment or aws.environment.name)
    watch = evidence.Watch(named, aws.environment.spec.buckets.checkpoints, aws.client("s3"), arguments.wait_s)
    with steps.at("jobs", f"waiting for a micro-batch of {', '.join(job.name for job in jobs)}; --detach does not") as step:
        try:
            found = watch.wait(jobs, step.watch)
        except KeyboardInterrupt:
            steps.line("interrupted", "all stacks are applied; penstock status shows the jobs")
            raise
        step.said = ", ".join(f"{one.job} {one.outcome}" for one in found)
    return found


def _changed_jobs(arguments: argparse.Namespace, aws: AwsAccess, plans: EnvironmentPlans, steps: Steps) -> list[JobChanges]:
    """The jobs that run and are to change; none before the bucket of the checkpoints is there. A deploy may be what mends the records."""
    folders = folders_of_apps(arguments.app_path, aws.environment)
    try:
        changes = job_changes(plans, aws.environment, aws.client("s3"), app_path=folders)
    except BucketUnreachable:
        return []
    except PenstockError as error:
        steps.line("jobs", f"their changes can't be shown: {error}")
        return []
    return [job for job in changes if job.state not in ("not running yet", "unchanged")]


def _applied_in_order(deployment: Deployment, arguments: argparse.Namespace, jobs: Sequence[Awaited], steps: Steps) -> list[DeployedStack]:
    """Applies the plans; says where an interrupted apply has stopped, and how to go on, and why a job is not as it was to be."""
    began = datetime.now(UTC)
    try:
        return deployment.apply()
    except PenstockError as error:
        # Several releases, or stacks, may have failed.
        if any(isinstance(fault, TerraformFailed) for fault in error.errors):
            with suppress(PenstockError):
                _say_refusals(deployment, began - _CLOCKS, steps)
            with suppress(PenstockError):
                _say_failures(deployment.aws, jobs, steps)
        raise
    except KeyboardInterrupt:
        names = ", ".join(deployment.applied) or "none"
        said = f"stacks applied completely: {names}. Resources of the others that Terraform has created are in its state"
        steps.line("interrupted", f"{said}\nThe next deploy continues from there: {_again(arguments)}")
        raise


def _say_refusals(deployment: Deployment, since: datetime, steps: Steps) -> None:
    address = deployment.cluster()
    if address is None:
        return
    # The client of Kubernetes takes long to import.
    from penstock.scripts.operations.refused_upgrades import refusals
    from penstock.scripts.provisioning.kubernetes_access import connected, eks_token

    with connected(address, lambda: eks_token(deployment.aws, address.name)) as api:
        for job, message in refusals(api, since).items():
            steps.line("refused", f"the upgrade of {job}, whose driver of before runs on:\n{message}")


def _say_failures(aws: AwsAccess, jobs: Sequence[Awaited], steps: Steps) -> None:
    for job, cause in evidence.failures(jobs, aws.environment.spec.buckets.checkpoints, aws.client("s3")).items():
        steps.line("failed", f"the changed {job}, which Helm rolls back to what ran before:\n{cause}")


def _again(arguments: argparse.Namespace) -> str:
    """The command line that continues a deploy; it plans, shows the plan and asks again."""
    environment = arguments.environment_argument or arguments.environment
    options = ["--out", str(arguments.out)] if arguments.out else []
    options += [word for folder in arguments.app_path for word in ("--app-path", str(folder))]
    options += [word for address in arguments.allow_loss for word in ("--allow-loss", address)]
    return shlex.join(["penstock", "deploy", *([environment] if environment else []), *arguments.stacks, *options])


def _unlock(deployment: Deployment, arguments: argparse.Namespace) -> None:
    if len(arguments.stacks) != 1:
        raise WrongUsage(given=f"--unlock with {len(arguments.stacks)} stacks", need="the STACK of that lock", fix="specify it")
    deployment.terraform(arguments.stacks[0]).unlock(arguments.unlock)


def _print_result(
    arguments: argparse.Namespace,
    deployment: Deployment,
    done: Sequence[DeployedStack],
    changes: Sequence[JobChanges],
    found: Sequence[Evidence],
) -> None:
    """The result; outputs only after an apply, because before one they may not exist."""
    outputs_by_stack = outputs(deployment) if not arguments.plan_only else {}
    if arguments.output != "table":
        spec = deployment.aws.environment.spec
        document: dict[str, Any] = {
            "schemaVersion": SCHEMA_VERSION,
            "environment": deployment.aws.environment.name,
            "account": spec.account,
            "region": spec.region,
            "against": "the state",
            "stacks": changes_table.document(deployment.planned),
            "jobs": [job.model_dump(by_alias=True, mode="json") for job in changes],
            "sessions": [one.model_dump(by_alias=True, mode="json") for one in _sessions(deployment)],
            "applied": [_applied(stack) for stack in done if stack.applied is not None],
            "evidence": [one.model_dump(by_alias=True, mode="json") for one in found],
            "outputs": outputs_by_stack,
        }
        sys.stdout.write(as_text(document, arguments.output))
        return
    for stack, values in outputs_by_stack.items():
        sys.stdout.write(f"\n{stack}\n" + "".join(f"  {name} = {value}\n" for name, value in values.items()))


def _applied(stack: DeployedStack) -> dict[str, Any]:
    assert stack.applied is not None
    counts = {"created": "create", "changed": "update", "destroyed": "delete"}
    return {
        "stack": stack.stack,
        **{name: stack.applied.count(action) for name, action in counts.items()},
        "seconds": round(stack.applied.duration_s, 1),
    }
