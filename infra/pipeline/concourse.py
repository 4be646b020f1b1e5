"""The pipeline for Concourse.

Source: Concourse's documentation, "Pipelines", "Jobs", "Task Step", "The IDToken credential manager".
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.infra.pipeline.steps import TARGETS, Repository, Step, Target, check_steps, deploy_steps

REPOSITORY = "repository"
# Variables for `fly set-pipeline`; only the repository's key is secret.
VARIABLES = (
    "repository_uri",
    "repository_key",
    "tools_repository",
    "tools_tag",
    "docker_host",
    "region",
    "dev_role_arn",
    "production_role_arn",
)
# Signs a token for each job, which AWS exchanges for the role's credentials: there are no long-lived keys.
TOKENS, AUDIENCE = "aws", "sts.amazonaws.com"
CHECK_LIMIT, DEPLOY_LIMIT = "1h", "2h"
TOKEN_FILE = "/tmp/aws-token"


def pipeline(repository: Repository) -> dict[str, Any]:
    """The pipeline."""
    jobs = [_check(repository)]
    passed = "check"
    for target in TARGETS:
        jobs.append(_deploy(repository, target, passed))
        passed = _job_name(target)
    source = {"uri": "((repository_uri))", "branch": "main", "private_key": "((repository_key))"}
    # A token per job: its subject names the job, so that dev's job cannot assume production's role.
    tokens = {"audience": [AUDIENCE], "subject_scope": "job", "expires_in": DEPLOY_LIMIT}
    return {
        "var_sources": [{"name": TOKENS, "type": "idtoken", "config": tokens}],
        "resources": [{"name": REPOSITORY, "type": "git", "icon": "git", "source": source}],
        "jobs": jobs,
    }


def _check(repository: Repository) -> dict[str, Any]:
    values = {"PENSTOCK_ENVIRONMENT": TARGETS[-1].environment}
    # The commit before a merge, or before a commit that was pushed without one.
    before = 'export PENSTOCK_BASE="$(git rev-parse HEAD^1)"'
    return {
        "name": "check",
        "serial": True,
        "plan": [{"get": REPOSITORY, "trigger": True}, {**_task(check_steps(repository), [before], values), "timeout": CHECK_LIMIT}],
    }


def _deploy(repository: Repository, target: Target, passed: str) -> dict[str, Any]:
    """A target that requires approval is not triggered: its job is started manually."""
    values = {
        "PENSTOCK_ENVIRONMENT": target.environment,
        "AWS_REGION": "((region))",
        "AWS_ROLE_ARN": f"(({target.environment}_role_arn))",
        "AWS_ROLE_SESSION_NAME": f"concourse-{target.environment}",
        "AWS_TOKEN": f"(({TOKENS}:token))",
        "DOCKER_HOST": "((docker_host))",
    }
    before = [
        f'(umask 077 && printf %s "$AWS_TOKEN" > {TOKEN_FILE})',
        f"unset AWS_TOKEN && export AWS_WEB_IDENTITY_TOKEN_FILE={TOKEN_FILE}",
        'export PENSTOCK_IMAGE_TAG="$(git rev-parse HEAD)"',
    ]
    get = {"get": REPOSITORY, "passed": [passed], "trigger": not target.approved}
    return {
        "name": _job_name(target),
        # Deploys never run concurrently and are not cancelled: the next one waits.
        "serial": True,
        "serial_groups": [_job_name(target)],
        "interruptible": False,
        "plan": [get, {**_task(deploy_steps(repository), before, values), "timeout": DEPLOY_LIMIT}],
    }


def _job_name(target: Target) -> str:
    return f"deploy-{target.environment}"


def _task(steps: Sequence[Step], before: Sequence[str], values: Mapping[str, str]) -> dict[str, Any]:
    """A single task, because each task has its own container, and the set-up cannot be moved into another."""
    scripts = [f"echo {shlex.quote(f'== {step.title}')}\n{step.script}" for step in steps]
    config = {
        "platform": "linux",
        "image_resource": {"type": "registry-image", "source": {"repository": "((tools_repository))", "tag": "((tools_tag))"}},
        "inputs": [{"name": REPOSITORY}],
        "params": dict(values),
        "run": {"path": "bash", "dir": REPOSITORY, "args": ["-c", "\n\n".join(["set -euo pipefail", *before, *scripts]) + "\n"]},
    }
    return {"task": "steps", "config": config}
