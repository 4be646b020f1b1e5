"""The pipelines of a new repository: the kit's, with the repository's own set-up, tests and image."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.infra.pipeline.steps import PENSTOCK, Repository
from penstock.infra.pipeline.written import concourse_text, github_actions_text

TEAM = Repository(
    specs="specs/*.yaml",
    setup=f"""\
python3 -m venv .venv
.venv/bin/python -m pip install --quiet --editable .
{PENSTOCK} setup
npm ci""",
    test=".venv/bin/python -m pytest",
    stacks=".venv/bin/python -m pytest environments --penstock-aws=localstack",
    # The kit's image has a tag of its own, so that it is built once for each version of the kit and of the apps' packages.
    image=f"""\
{PENSTOCK} image context --environment "$PENSTOCK_ENVIRONMENT" --out .penstock/image
kit="$url:kit-$(cat .penstock/image/checksum)"
if ! docker manifest inspect "$kit" > /dev/null; then
  docker buildx build --platform linux/amd64,linux/arm64 -f .penstock/image/infra/image/Dockerfile -t "$kit" --push .penstock/image
fi
docker buildx build --platform linux/amd64,linux/arm64 --build-arg JOBS_IMAGE="$kit" -t "$url:$PENSTOCK_IMAGE_TAG" --push .""",
)


def pipelines() -> Mapping[str, str]:
    """Path in the repository -> text."""
    return {
        ".github/workflows/penstock.yaml": github_actions_text(TEAM),
        "ci/concourse.yaml": concourse_text(TEAM),
    }
