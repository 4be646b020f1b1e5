"""``python -m penstock.scripts.dev.jobs_image``: builds the image of the jobs on assembled bases, which the tests in pods would build, and
prints the variables that give it to them.
"""

from __future__ import annotations

import sys

from penstock.scripts.image.build import built_archive
from penstock.scripts.progress import Steps
from penstock.sizing.errors import PenstockError


def main() -> int:
    """Builds it unless it has been.

    Returns:
        0, the exit code of an error, or 130 if it was interrupted.
    """
    try:
        with Steps().at("image", "building it on assembled bases") as step:
            archive = built_archive(lambda said: step.watch(said))
            step.said = "built"
    except PenstockError as error:
        print(error.render(), file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    print(f"export PENSTOCK_PODS_IMAGE={archive.image}\nexport PENSTOCK_PODS_IMAGE_ARCHIVE={archive.path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
