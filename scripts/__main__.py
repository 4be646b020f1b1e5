"""``python -m penstock.scripts`` is ``penstock``."""

from __future__ import annotations

import sys

from penstock.scripts.cli.command import main

sys.exit(main())
