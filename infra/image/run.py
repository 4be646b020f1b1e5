"""The driver's program as a file, for ``spark-submit`` and the Apache operator, which start files, not modules."""

from __future__ import annotations

import sys

from penstock.jobs.driver.runtime import main

sys.exit(main(sys.argv[1:]))
