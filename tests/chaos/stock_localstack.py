"""LocalStack as its image runs it: without Penstock's corrections of its EC2."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.scripts.emulation.localstack_python import find
from penstock.scripts.installation.tool_environment import ToolEnvironment
from penstock.scripts.process.supervised import SupervisedProcess

START_LIMIT_S = 180


@contextmanager
def stock_localstack(folder: Path) -> Iterator[str]:
    """Its URL, while it runs.

    Args:
        folder: for its data and its log; exists.
    """
    python = find(os.environ)
    assert python is not None, "there is no Python 3.13, which LocalStack runs on"
    command = [str(ToolEnvironment("localstack", python=python).ensure(print) / "python"), "-m", "localstack.runtime.main"]
    data, log, port = folder / "localstack", folder / "localstack.log", _free_port()
    data.mkdir()
    settings = {"GATEWAY_LISTEN": f"127.0.0.1:{port}", "FILESYSTEM_ROOT": str(data), "HOME": str(data), "PATH": os.environ["PATH"]}
    quiet = {"DISABLE_EVENTS": "1", "SKIP_SSL_CERT_DOWNLOAD": "1", "DNS_ADDRESS": "0"}
    process = SupervisedProcess(command, env={**settings, **quiet}, log=log, remove=data, grace_s=10)
    process.start()
    try:
        until_s = time.monotonic() + START_LIMIT_S
        while not re.search(r"^Ready\.$", log.read_text("utf-8", "replace"), re.MULTILINE):
            assert process.alive() and time.monotonic() < until_s, log.read_text("utf-8", "replace")[-4000:]
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.stop()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
