"""LocalStack with a patched EC2: ``python -m penstock.scripts.emulation.localstack_main``, run by LocalStack's own Python."""

from __future__ import annotations

import runpy

from penstock.scripts.emulation import ec2_corrections


def main() -> None:
    """Run LocalStack until SIGTERM."""
    ec2_corrections.apply()
    runpy.run_module("localstack.runtime.main", run_name="__main__")


if __name__ == "__main__":
    main()
