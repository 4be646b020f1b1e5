"""``python -m penstock.scripts.dev.grafana_dashboard > docs/stacks/grafana-dashboard.json``: the dashboard; a test compares the two."""

from __future__ import annotations

import json
import sys

from penstock.infra.manifests.grafana_dashboard import dashboard


def text() -> str:
    """The dashboard as JSON, with a trailing newline."""
    return json.dumps(dashboard(), indent=2) + "\n"


if __name__ == "__main__":
    sys.stdout.write(text())
