"""``python -m penstock.scripts.kube``: build the programs of the Kubernetes tests; with ``--serve``, run an API server until Ctrl-C, with
``--serve --nodes`` a cluster whose pods run.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from penstock.scripts.kube import binaries
from penstock.scripts.kube.api_server import ApiServer
from penstock.scripts.kube.cluster.control_plane import API_PORT
from penstock.scripts.kube.cluster.pod_cluster import PodCluster
from penstock.scripts.kube.image_registry import ImageRegistry
from penstock.sizing.errors import PenstockError

# Of the programs' states while they are served.
_LOOK_S = 1.0


def main(argv: Sequence[str]) -> int:
    """Build what is not built yet.

    Args:
        argv: arguments after the program's name.

    Returns:
        The exit code: 0 on success, 4 or 5 with an error of KUBE-001 to KUBE-026.
    """
    options = _parser().parse_args(argv)
    programs = (*binaries.PROGRAMS, *((*binaries.CLUSTER_PROGRAMS, binaries.CRANE) if options.nodes else ()))
    try:
        for program in programs:
            print(binaries.built(program, _print_line), flush=True)
        if options.serve:
            _serve(_cluster(options.api_port) if options.nodes else _api_server)
    except PenstockError as error:
        print(error.render(), file=sys.stderr)
        return error.exit_code
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m penstock.scripts.kube", description="Builds etcd, kube-apiserver and helm, once.")
    parser.add_argument("--serve", action="store_true", help="start an API server, print its kubeconfig, and stop on Ctrl-C")
    nodes = (
        "also build what nodes need; with --serve, start a cluster with two nodes and a registry of images, and print what the tests need"
    )
    parser.add_argument("--nodes", action="store_true", help=nodes)
    parser.add_argument(
        "--api-port", type=int, default=API_PORT, help=f"of the API of --nodes (default {API_PORT}, as on EKS; kind has 6443)"
    )
    return parser


def _serve(start: Callable[[Path, ExitStack], Callable[[], None]]) -> None:
    """Serve until Ctrl-C, or until one of the programs has exited."""
    end = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: end.set())
    with tempfile.TemporaryDirectory(prefix="penstock-kube-") as folder, ExitStack() as held:
        check = start(Path(folder), held)
        while not end.wait(_LOOK_S):
            check()


def _api_server(folder: Path, held: ExitStack) -> Callable[[], None]:
    server = held.enter_context(ApiServer(folder=folder / "server", logs=folder))
    print(f"export KUBECONFIG={server.kubeconfig}", flush=True)
    return server.check


def _cluster(api_port: int) -> Callable[[Path, ExitStack], Callable[[], None]]:
    def start(folder: Path, held: ExitStack) -> Callable[[], None]:
        cluster = held.enter_context(PodCluster(folder=folder / "cluster", api_port=api_port, progress=_print_line))
        registry = held.enter_context(ImageRegistry(folder / "images", cluster.host_address, _print_line))
        cluster.pull_from(registry.address)
        exports = {"KUBECONFIG": cluster.kubeconfig, "PENSTOCK_PODS_HOST": cluster.host_address, "REGISTRY": registry.address}
        print("\n".join(f"export {name}={value}" for name, value in exports.items()), flush=True)

        def check() -> None:
            cluster.check()
            registry.check()

        return check

    return start


def _print_line(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
