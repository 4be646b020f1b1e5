"""Whether the images of others are pulled by digest, as `penstock doctor` reports it."""

from __future__ import annotations

from penstock.infra.environment import Environment
from penstock.infra.environment_file import argument_of
from penstock.infra.image_lock import FILE, digest_of
from penstock.infra.images_of_others import images
from penstock.scripts.provisioning.finding import OK, Finding, missing
from penstock.sizing.errors import PenstockError

_NAME, _PURPOSE = "images of others", "a tag may be given to another image, a digest may not"


def look(environment: Environment) -> list[Finding]:
    """The images that the environment's pods pull by their tags alone; nothing of an environment that pulls none.

    Args:
        environment: the environment.
    """
    if environment.spec.endpoints is not None or not (named := images(environment)):
        return []
    try:
        by_tag = [image for image in named if digest_of(image) is None]
    except PenstockError as error:
        return [missing(_NAME, said=f"{error.code}: {error.given}", purpose=_PURPOSE, fix=error.fix, needed=True)]
    if not by_tag:
        return [Finding(_NAME, OK, f"{len(named)} pulled by digest", _PURPOSE)]
    said = f"pulled by tag: {', '.join(by_tag)}"
    fix = f"penstock image lock --environment {argument_of(environment)}, and commit {FILE}"
    return [missing(_NAME, said=said, purpose=_PURPOSE, fix=fix, needed=False)]
