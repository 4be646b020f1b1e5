"""The pipeline as a workflow of GitHub Actions.

Source: GitHub's documentation, "Workflow syntax for GitHub Actions", "Configuring OpenID Connect in Amazon Web Services".
"""

from __future__ import annotations

from typing import Any

from penstock.infra.pipeline.steps import REVIEW_FILE, TARGETS, Repository, Step, Target, check_steps, deploy_steps

# Each is pinned by the commit of the release noted next to it: a tag can be moved.
ACTIONS = {
    "actions/checkout": ("08c6903cd8c0fde910a37f88322edcfb5dd907a8", "v5.0.0"),
    "actions/setup-python": ("e797f83bcb11b83ae66e0230d6156d7c80228e7c", "v6.0.0"),
    "actions/setup-java": ("dded0888837ed1f317902acf8a20df0ad188d165", "v5.0.0"),
    "actions/setup-node": ("2028fbc5c25fe9cf00d9f06a71cc4710d4507903", "v6.0.0"),
    "hashicorp/setup-terraform": ("b9cd54a3c349d3f38e8881555d616ced269862dd", "v3.1.2"),
    "aws-actions/configure-aws-credentials": ("a03048d87541d1d9fcf2ecf528a4a65ba9bd7838", "v5.0.0"),
}
# Variables of a GitHub environment: the role to assume, the region, and a runner that reaches the brokers and the API server.
ROLE, REGION = "${{ vars.PENSTOCK_ROLE_ARN }}", "${{ vars.AWS_REGION }}"
# The last LocalStack that starts without a token; a later one is set as a variable of the repository, and its token as a secret.
LOCALSTACK_IMAGE = "${{ vars.LOCALSTACK_IMAGE || 'localstack/localstack:4.14.0' }}"
LOCALSTACK_TOKEN = "${{ secrets.LOCALSTACK_AUTH_TOKEN }}"
LOCALSTACK_ENDPOINT = "http://127.0.0.1:4566"
CHECK_RUNNER = "ubuntu-24.04"
DEPLOY_RUNNER = "${{ vars.PENSTOCK_RUNNER || 'ubuntu-24.04' }}"
# A first deploy creates a cluster and brokers, which takes most of an hour; the role's session must last as long.
CHECK_MINUTES, DEPLOY_MINUTES = 60, 120


def workflow(repository: Repository) -> dict[str, Any]:
    """The workflow. Its triggers are under a key that YAML 1.1 would read as true, so it must be quoted."""
    deploys: dict[str, Any] = {}
    needed = "check"
    for target in TARGETS:
        deploys[_job_name(target)] = _deploy(repository, target, needed)
        needed = _job_name(target)
    return {
        "name": "penstock",
        "on": {"pull_request": {"branches": ["main"]}, "push": {"branches": ["main"]}},
        # None by default; a job declares its own.
        "permissions": {},
        "defaults": {"run": {"shell": "bash"}},
        "jobs": {"check": _check(repository), **deploys},
    }


def _check(repository: Repository) -> dict[str, Any]:
    base = "${{ github.event.pull_request.base.sha || github.event.before }}"
    summary = {"name": "Show the review", "if": "always()", "run": f'cat {REVIEW_FILE} >> "$GITHUB_STEP_SUMMARY" || true'}
    return {
        "runs-on": CHECK_RUNNER,
        "timeout-minutes": CHECK_MINUTES,
        "permissions": {"contents": "read"},
        # A newer commit of the same branch cancels the check of the older one.
        "concurrency": {"group": "penstock-check-${{ github.ref }}", "cancel-in-progress": True},
        "env": {"PENSTOCK_ENVIRONMENT": TARGETS[-1].environment, "PENSTOCK_BASE": base, "LOCALSTACK_ENDPOINT": LOCALSTACK_ENDPOINT},
        # GitHub waits until it is healthy by the check that its image has.
        "services": {"localstack": {"image": LOCALSTACK_IMAGE, "ports": ["4566:4566"], "env": {"LOCALSTACK_AUTH_TOKEN": LOCALSTACK_TOKEN}}},
        "steps": [*_tools(), *(_step(step) for step in check_steps(repository)), summary],
    }


def _deploy(repository: Repository, target: Target, needed: str) -> dict[str, Any]:
    """GitHub asks the reviewers of an environment before the job starts, if it has any: a target that requires approval must have some."""
    role = _uses(
        "aws-actions/configure-aws-credentials",
        **{"role-to-assume": ROLE, "aws-region": REGION, "role-duration-seconds": DEPLOY_MINUTES * 60, "mask-aws-account-id": True},
    )
    return {
        "needs": [needed],
        "if": "github.event_name == 'push'",
        "runs-on": DEPLOY_RUNNER,
        "timeout-minutes": DEPLOY_MINUTES,
        "environment": target.environment,
        "permissions": {"contents": "read", "id-token": "write"},
        # Deploys never run concurrently and are not cancelled: the next one waits.
        "concurrency": {"group": f"penstock-deploy-{target.environment}", "cancel-in-progress": False},
        "env": {"PENSTOCK_ENVIRONMENT": target.environment, "PENSTOCK_IMAGE_TAG": "${{ github.sha }}"},
        "steps": [*_tools(), role, *(_step(step) for step in deploy_steps(repository))],
    }


def _job_name(target: Target) -> str:
    return f"deploy-{target.environment}"


def _tools() -> list[dict[str, Any]]:
    """Prerequisites of ./scripts/setup. The full history is needed for the review, and the token is not left on disk."""
    return [
        _uses("actions/checkout", **{"fetch-depth": 0, "persist-credentials": False}),
        _uses("actions/setup-python", **{"python-version": "3.11"}),
        _uses("actions/setup-java", distribution="temurin", **{"java-version": "17"}),
        _uses("actions/setup-node", **{"node-version": "22"}),
        _uses("hashicorp/setup-terraform", terraform_version="1.11.4", terraform_wrapper=False),
    ]


def _step(step: Step) -> dict[str, Any]:
    return {"name": step.title, "id": step.name, "run": step.script}


def _uses(action: str, **given: Any) -> dict[str, Any]:
    commit, _ = ACTIONS[action]
    return {"uses": f"{action}@{commit}", "with": given}
