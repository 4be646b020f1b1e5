"""A registry of images on this machine, with the images in a folder: that of go-containerregistry's `crane`, which Go builds."""

from __future__ import annotations

import os
import socket
import time
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Self

from penstock.scripts.kube import binaries
from penstock.scripts.kube.binaries import Progress
from penstock.scripts.kube.errors import ComponentDied, NodeNotReady
from penstock.scripts.process.supervised import SupervisedProcess

# Measured on 2 cores: a tenth of a second. A minute allows for a busy machine.
START_LIMIT_S = 60
_ANSWER_S = 10
_POLL_S = 0.05


class ImageRegistry:
    """A registry on a free port, without TLS and without a login, which ends with this process.

    Args:
        folder: missing folder for its images, removed at the end; its log is beside it.
        host: address of this machine that it listens on.
        progress: called with a line from time to time while `crane` is built.
    """

    def __init__(self, folder: Path, host: str, progress: Progress = lambda _: None) -> None:
        self._folder = folder.absolute()
        self._host = host
        self._progress = progress
        self.address = ""

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def start(self) -> Self:
        """Build `crane` unless it is built, start the registry, and wait until it answers.

        Raises:
            PenstockError: KUBE-001 to KUBE-006.
            ComponentDied: KUBE-025.
            NodeNotReady: KUBE-026.
        """
        crane = binaries.built(binaries.CRANE, self._progress)
        self._folder.mkdir()
        with socket.create_server((self._host, 0)) as free:
            self.address = f"{self._host}:{free.getsockname()[1]}"
        command = [str(crane), "registry", "serve", f"--address={self.address}", f"--disk={self._folder}"]
        log = self._folder.with_suffix(".log")
        self._process = SupervisedProcess(command, env=dict(os.environ), log=log, remove=self._folder).start()
        try:
            self._wait_until_it_answers()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stop it and remove its images."""
        self._process.stop()

    def check(self) -> None:
        """Raise if it has exited.

        Raises:
            ComponentDied: KUBE-025.
        """
        if not self._process.alive():
            given = f"exited with code {self._process.returncode}; its log:\n{self._process.tail()}"
            raise ComponentDied(path="crane", given=given, need="a registry that runs", fix="check the log, and retry")

    def _wait_until_it_answers(self) -> None:
        until_s = time.monotonic() + START_LIMIT_S
        while not self._answers():
            self.check()
            if time.monotonic() > until_s:
                need = f"an answer of the registry within {START_LIMIT_S} s"
                raise NodeNotReady(path=self.address, given=self._process.tail(), need=need, fix="check the log, and retry")
            time.sleep(_POLL_S)

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://{self.address}/v2/", timeout=_ANSWER_S):
                return True
        except OSError:
            return False
