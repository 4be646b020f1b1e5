"""``python -m penstock.scripts.site``: builds the documentation's site. ``./scripts/docs`` does it after the set-up."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NoReturn

from penstock.scripts.cli.command import exit_code
from penstock.scripts.errors import PortInUse, WrongOption
from penstock.scripts.layout import ROOT
from penstock.scripts.progress import Steps
from penstock.scripts.site.build import build
from penstock.sizing.errors import PenstockError

_LOOPBACK = "127.0.0.1"
_INTERRUPTED = 130


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise WrongOption(given=message, need="options of ./scripts/docs", fix="./scripts/docs --help lists them")


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


def main(argv: Sequence[str]) -> int:
    """Builds the site, and serves it if asked to.

    Args:
        argv: the arguments after the program's name.

    Returns:
        The exit code: 0 built, 1 dead links or assets from another host, 2 a wrong option or navigation, 4 a missing tool, 5 not
        rendered, 130 interrupted.
    """
    try:
        options = _parse(argv)
        steps = Steps()
        with steps.at("site", "building the site") as step:
            html = build(ROOT, options.out, lambda said: step.watch(said))
            step.said = f"{html / 'index.html'}"
        if options.serve:
            _serve(html, options.port, steps)
    except PenstockError as error:
        print("\n".join(fault.render() for fault in error.errors), file=sys.stderr)
        return exit_code(error)
    except KeyboardInterrupt:
        return _INTERRUPTED
    return 0


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = _Parser(prog="./scripts/docs", description="Build the documentation as a site. Dead links are errors.")
    out = ROOT / ".penstock/site"
    parser.add_argument("--out", type=Path, default=out, metavar="FOLDER", help="working folder; its html/ is the site (.penstock/site)")
    parser.add_argument("--serve", action="store_true", help="then show the site on this machine until Ctrl-C")
    parser.add_argument("--port", type=int, default=0, help="of --serve (a free one)")
    return parser.parse_args(argv)


def _serve(html: Path, port: int, steps: Steps) -> None:
    try:
        server = ThreadingHTTPServer((_LOOPBACK, port), partial(_Quiet, directory=str(html)))
    except OSError as error:
        raise PortInUse(path=f"{_LOOPBACK}:{port}", given=str(error), need="a free port", fix="another --port, or none") from error
    with server:
        steps.line("serving", f"http://{_LOOPBACK}:{server.server_port}/ until Ctrl-C")
        server.serve_forever()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
