"""``python -m penstock.scripts.image``: builds the image of the jobs on assembled bases, and prints its file and its name."""

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
    print(f"{archive.path}\n{archive.image}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
