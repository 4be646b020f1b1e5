"""The holder of a stack's state lock, parsed from Terraform's diagnostic."""

from __future__ import annotations

import re

from penstock.scripts.provisioning.errors import StateLocked

# Source: Terraform 1.11, the summary of the diagnostic and the fields of its lock (internal/states/statemgr/locker.go, LockInfo).
LOCKED = "Error acquiring the state lock"
_FIELD = re.compile(r"^\s*(ID|Path|Operation|Who|Version|Created):[ \t]*(.*?)\s*$", re.MULTILINE)
_OPERATIONS = {"OperationTypeApply": "an apply or a destroy", "OperationTypePlan": "a plan", "OperationTypeRefresh": "a refresh"}


def locked(stack: str, detail: str) -> StateLocked:
    """Return the error of a lock that another process holds.

    Args:
        stack: the stack's id.
        detail: detail of Terraform's diagnostic.
    """
    lock = dict(_FIELD.findall(detail))
    if "Who" not in lock:
        # The backend did not name the holder; its message is all that is known.
        given = " ".join(detail.split())[:500]
        return StateLocked(path=f"stack {stack}", given=given, need="the state lock", fix="retry when the other run has finished")
    what = _OPERATIONS.get(lock.get("Operation", ""), lock.get("Operation", ""))
    given = f"{lock['Who']} is running {what} since {lock.get('Created', '?')}, lock ID {lock.get('ID', '?')}"
    fix = "wait until it has finished and retry; to force-unlock a stale lock: "
    fix += f"penstock deploy ENV {stack} --plan-only --unlock {lock.get('ID', 'ID')}"
    return StateLocked(path=f"stack {stack}", given=given, need="only one deploy or destroy at a time", fix=fix)
