"""``penstock feed`` as a process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from confluent_kafka import Message

from penstock.scripts.layout import ROOT
from tests.emulated.clicks import LIMIT_S


def command(spec: Path, *options: str) -> subprocess.Popen[str]:
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    variables.pop("PENSTOCK_ENVIRONMENT", None)
    words = [sys.executable, "-m", "penstock.scripts", "feed", str(spec), *options]
    return subprocess.Popen(words, cwd=spec.parent, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def fed(spec: Path, *options: str) -> tuple[int, str]:
    """Exit code and what it has said."""
    running = command(spec, *options)
    try:
        _, said = running.communicate(timeout=LIMIT_S)
    finally:
        running.kill()
    return running.returncode, said


def values(messages: list[Message]) -> list[bytes]:
    return [bytes(message.value() or b"") for message in messages]
