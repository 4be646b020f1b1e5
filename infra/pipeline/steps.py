"""The steps of a pipeline in order, independent of the tool that runs it.

A step is a bash script that runs in the root of the checkout with ``set -euo pipefail``. Its environment variables:

    PENSTOCK_ENVIRONMENT   the environment to check or deploy
    PENSTOCK_BASE          the commit before the change, for the review
    PENSTOCK_IMAGE_TAG     the tag of the jobs' image: the commit that it is built from
    AWS_REGION             and AWS credentials; neither is set when a change is only checked
    LOCALSTACK_ENDPOINT    a LocalStack; if it is not set, the kit starts one, on Python 3.13
"""

from __future__ import annotations

from dataclasses import dataclass

PENSTOCK = ".venv/bin/penstock"
# Output of a check for people: what the change means for each job, as Markdown.
REVIEW_FILE = ".penstock/review.md"
FOUNDATION_FILE = ".penstock/foundation.json"
REPOSITORY_URL = "import json; print(json.load(open('.penstock/foundation.json'))['outputs']['registry']['repository_url'])"


@dataclass(frozen=True)
class Step:
    """A step.

    Args:
        name: unique in a job.
        title: for people.
        script: for bash.
    """

    name: str
    title: str
    script: str


@dataclass(frozen=True)
class Target:
    """An environment that the pipeline deploys.

    Args:
        environment: its name.
        approved: whether a deploy requires manual approval.
    """

    environment: str
    approved: bool


@dataclass(frozen=True)
class Repository:
    """What differs between the repositories that have the pipeline.

    Args:
        specs: pattern of the jobs' specs.
        setup: script that installs what the steps need.
        test: command line of the tests.
        stacks: command line that applies all AWS stacks to LocalStack, plans them again without changes, and destroys them.
        image: script that builds and pushes the image of ``$url:$PENSTOCK_IMAGE_TAG``.
    """

    specs: str
    setup: str
    test: str
    stacks: str
    image: str


# After a push that created or rewrote a branch, the commit before it does not exist.
_REVIEW = f"""\
mkdir -p .penstock
base=$(git rev-parse --verify --quiet "$PENSTOCK_BASE^{{commit}}" || git rev-parse HEAD^1)
{PENSTOCK} review "$base" --environment "$PENSTOCK_ENVIRONMENT" -o markdown | tee {REVIEW_FILE}"""

# In the order in which a change is deployed to them.
TARGETS = (Target("dev", approved=False), Target("production", approved=True))

# This one, in which the kit is a checkout.
KIT = Repository(
    specs="jobs/specs/*.yaml",
    setup="./scripts/setup",
    test="./scripts/test --tier fast",
    stacks="./scripts/test --localstack",
    image=f"""\
rm -rf build dist/penstock_kit-*.whl
.venv/bin/python -m pip wheel --no-index --no-deps --no-build-isolation --wheel-dir dist .
{PENSTOCK} packages --environment "$PENSTOCK_ENVIRONMENT" --out dist/packages
docker buildx build --platform linux/amd64,linux/arm64 -f infra/image/Dockerfile -t "$url:$PENSTOCK_IMAGE_TAG" --push .""",
)


def check_steps(repository: Repository) -> tuple[Step, ...]:
    """Those of a check: without AWS and credentials, for any contributor's change, of the last target, which it is ultimately made for."""
    specs = repository.specs
    return (
        _setup(repository),
        # The steps after it need not check them again, also where they run in a container of their own.
        Step("check", "Check the apps", f"{PENSTOCK} check {specs}"),
        Step("lint", "Lint the specs", f'{PENSTOCK} lint {specs} --no-check --environment "$PENSTOCK_ENVIRONMENT"'),
        Step("size", "Size the jobs", f'{PENSTOCK} size {specs} --no-check --environment "$PENSTOCK_ENVIRONMENT"'),
        Step("review", "Review the change", _REVIEW),
        Step("test", "Test", repository.test),
        Step("synth", "Synthesize", f'{PENSTOCK} synth "$PENSTOCK_ENVIRONMENT" --no-check'),
        Step("scan", "Scan", f'{PENSTOCK} scan "$PENSTOCK_ENVIRONMENT"'),
        Step("stacks", "Apply the stacks to LocalStack", repository.stacks),
    )


def deploy_steps(repository: Repository) -> tuple[Step, ...]:
    """Those of a deploy: first the registry and the brokers, because a job needs its image and its topics before its driver starts."""
    foundation = f'mkdir -p .penstock\n{PENSTOCK} deploy "$PENSTOCK_ENVIRONMENT" registry kafka --yes -o json > {FOUNDATION_FILE}'
    return (
        _setup(repository),
        Step("state", "Terraform's state", f'{PENSTOCK} bootstrap "$PENSTOCK_ENVIRONMENT"'),
        Step("foundation", "Deploy registry and brokers", foundation),
        Step("image", "Build and push the image", _image(repository)),
        Step("topics", "Apply the topics", f'{PENSTOCK} topics apply "$PENSTOCK_ENVIRONMENT" --yes'),
        Step("deploy", "Deploy all stacks in order", f'{PENSTOCK} deploy "$PENSTOCK_ENVIRONMENT" --yes'),
    )


def _setup(repository: Repository) -> Step:
    return Step("setup", "Set up", repository.setup)


def _image(repository: Repository) -> str:
    build = "\n".join(f"  {line}" for line in repository.image.split("\n"))
    return f"""\
url=$(.venv/bin/python -c "{REPOSITORY_URL}")
aws ecr get-login-password | docker login --username AWS --password-stdin "${{url%%/*}}"
# Tags are immutable: an existing one is this commit's, pushed by an earlier run that failed later.
if ! docker manifest inspect "$url:$PENSTOCK_IMAGE_TAG" > /dev/null; then
  # For both architectures; the builder emulates the foreign one.
  docker run --privileged --rm tonistiigi/binfmt:qemu-v9.2.2 --install arm64,amd64
  docker buildx create --use --name penstock 2> /dev/null || docker buildx use penstock
{build}
fi"""
