"""``python -m scripts`` is ``penstock``."""

from __future__ import annotations

import sys

from scripts.command import main

sys.exit(main())
