"""Which machine this is: its EC2 instance type, or the model of its CPU."""

from __future__ import annotations

import os
import platform
import re
import urllib.request
from pathlib import Path

# Source: EC2's documentation, "Use the Instance Metadata Service", IMDSv2; the variable is that of the AWS SDKs.
_ENDPOINT_VARIABLE, _ENDPOINT = "AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://169.254.169.254"
_DISABLED_VARIABLE = "AWS_EC2_METADATA_DISABLED"
_TYPE = re.compile(r"[a-z0-9-]+\.[a-z0-9-]+")
_CPU_INFO = Path("/proc/cpuinfo")
# On an instance it answers within milliseconds.
_TIMEOUT_S = 1.0


def name() -> str:
    """The instance type of an EC2 instance; of another machine the model of its CPU, or its architecture."""
    return instance_type() or _cpu_model() or platform.machine() or "unknown"


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def instance_type() -> str | None:
    """By the instance metadata service; None if this is no EC2 instance, or it does not answer."""
    if os.environ.get(_DISABLED_VARIABLE, "").lower() == "true":
        return None
    endpoint = os.environ.get(_ENDPOINT_VARIABLE, _ENDPOINT).rstrip("/")
    try:
        token = _asked(f"{endpoint}/latest/api/token", "PUT", {"X-aws-ec2-metadata-token-ttl-seconds": "60"})
        found = _asked(f"{endpoint}/latest/meta-data/instance-type", "GET", {"X-aws-ec2-metadata-token": token})
    except (OSError, ValueError):
        return None
    return found if _TYPE.fullmatch(found) else None


def _asked(url: str, method: str, headers: dict[str, str]) -> str:
    request = urllib.request.Request(url, method=method, headers=headers)
    # A proxy that the environment names is not on the way to the instance's own address.
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=_TIMEOUT_S) as answer:
        return str(answer.read(200).decode("ascii"))


def _cpu_model() -> str | None:
    try:
        text = _CPU_INFO.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = re.search(r"^model name\s*:\s*(.+)$", text, flags=re.MULTILINE)
    return found[1].strip() if found else None
