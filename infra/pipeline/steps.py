"""What a pipeline does, in order, whichever tool runs it.

A step is a script for bash, run in the root of the checkout with ``set -euo pipefail``. It finds in its environment:

    PENSTOCK_ENVIRONMENT   the environment that is checked or deployed
    PENSTOCK_BASE          the commit before the change, for the cost difference
    PENSTOCK_IMAGE_TAG     the tag of the jobs' image: the commit that it is built from
    AWS_REGION             and credentials of AWS; neither where a change is only checked
"""

from __future__ import annotations

from dataclasses import dataclass

SPECS = "jobs/specs/*.yaml"
PENSTOCK = ".venv/bin/penstock"
# What a check leaves for people: the cost difference as Markdown.
COST_FILE = ".penstock/cost.md"
SPECS_BEFORE = ".penstock/before"
FOUNDATION_FILE = ".penstock/foundation.json"
REPOSITORY_URL = "import json; print(json.load(open('.penstock/foundation.json'))['outputs']['registry']['repository_url'])"


@dataclass(frozen=True)
class Step:
    """A step.

    Args:
        name: of which a job has one.
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
        approved: whether somebody has to say so before.
    """

    environment: str
    approved: bool


# In the order in which a change reaches them.
TARGETS = (Target("dev", approved=False), Target("production", approved=True))

_SETUP = Step("setup", "Set up", "./scripts/setup")

# Without AWS and without credentials: it runs for anybody's change. It is done for the last target, the one that a change is made for.
CHECK = (
    _SETUP,
    Step("lint", "Lint the specs", f'{PENSTOCK} lint {SPECS} --environment "$PENSTOCK_ENVIRONMENT"'),
    Step("size", "Size the jobs", f'{PENSTOCK} size {SPECS} --environment "$PENSTOCK_ENVIRONMENT"'),
    Step(
        "cost",
        "Cost difference",
        f"""\
mkdir -p {SPECS_BEFORE}
: > {COST_FILE}
# A push that began a branch, or wrote it anew, names a commit before it that is not there.
base=$(git rev-parse --verify --quiet "$PENSTOCK_BASE^{{commit}}" || git rev-parse HEAD^1)
for spec in $(git diff --name-only --diff-filter=M "$base" -- '{SPECS}'); do
  before={SPECS_BEFORE}/$(basename "$spec")
  git show "$base:$spec" > "$before"
  {PENSTOCK} cost "$before" "$spec" --environment "$PENSTOCK_ENVIRONMENT" --app-path . -o markdown | tee -a {COST_FILE}
done""",
    ),
    Step("test", "Test", "./scripts/test --tier fast"),
    Step("synth", "Synthesize", f'{PENSTOCK} synth "$PENSTOCK_ENVIRONMENT"'),
    Step("scan", "Scan", f'{PENSTOCK} scan "$PENSTOCK_ENVIRONMENT"'),
)

# The registry and the brokers come first, for a job needs its image and its topics before its driver starts; then all that is left.
DEPLOY = (
    _SETUP,
    Step("state", "Terraform's state", f'{PENSTOCK} bootstrap "$PENSTOCK_ENVIRONMENT"'),
    Step(
        "foundation",
        "Deploy registry and brokers",
        f'mkdir -p .penstock\n{PENSTOCK} deploy "$PENSTOCK_ENVIRONMENT" registry kafka --yes -o json > {FOUNDATION_FILE}',
    ),
    Step(
        "image",
        "Build and push the image",
        f"""\
url=$(.venv/bin/python -c "{REPOSITORY_URL}")
aws ecr get-login-password | docker login --username AWS --password-stdin "${{url%%/*}}"
# Tags never change: one that is there is this commit's, of a run that ended later on.
if ! docker manifest inspect "$url:$PENSTOCK_IMAGE_TAG" > /dev/null; then
  # For both kinds of nodes; the emulation of the other one is the builder's.
  docker run --privileged --rm tonistiigi/binfmt:qemu-v9.2.2 --install arm64,amd64
  docker buildx create --use --name penstock 2> /dev/null || docker buildx use penstock
  rm -rf build dist/penstock_kit-*.whl
  .venv/bin/python -m pip wheel --no-index --no-deps --no-build-isolation --wheel-dir dist .
  docker buildx build --platform linux/amd64,linux/arm64 -f infra/image/Dockerfile -t "$url:$PENSTOCK_IMAGE_TAG" --push .
fi""",
    ),
    Step("topics", "Apply the topics", f'{PENSTOCK} topics apply "$PENSTOCK_ENVIRONMENT" --yes'),
    Step("deploy", "Deploy all stacks in order", f'{PENSTOCK} deploy "$PENSTOCK_ENVIRONMENT" --yes'),
)
