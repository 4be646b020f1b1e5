"""``python -m penstock.scripts.kube``: build the programs of the Kubernetes tests; with ``--serve``, run an API server until Ctrl-C."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

from penstock.scripts.kube import binaries
from penstock.scripts.kube.api_server import ApiServer
from penstock.sizing.errors import PenstockError


def main(argv: Sequence[str]) -> int:
    """Build what is not built yet.

    Args:
        argv: arguments after the program's name.

    Returns:
        The exit code: 0 on success, 4 or 5 with an error of KUBE-001 to KUBE-011.
    """
    parser = argparse.ArgumentParser(prog="python -m penstock.scripts.kube", description="Builds etcd, kube-apiserver and helm, once.")
    parser.add_argument("--serve", action="store_true", help="start an API server, print its kubeconfig, and stop on Ctrl-C")
    options = parser.parse_args(argv)
    try:
        for program in binaries.PROGRAMS:
            print(binaries.built(program, _print_line), flush=True)
        if options.serve:
            _serve()
    except PenstockError as error:
        print(error.render(), file=sys.stderr)
        return error.exit_code
    return 0


def _serve() -> None:
    end = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: end.set())
    with (
        tempfile.TemporaryDirectory(prefix="penstock-kube-") as folder,
        ApiServer(folder=Path(folder) / "server", logs=Path(folder)) as server,
    ):
        print(f"export KUBECONFIG={server.kubeconfig}", flush=True)
        end.wait()


def _print_line(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
