"""How long a micro-batch may go without a sign of progress before its job restarts: longer for slow triggers and for large state."""

from __future__ import annotations

from penstock.sizing.load.spot_loss import DEFAULT_RELOAD_MB_PER_S

# Source: Flink 1.20, the default of execution.checkpointing.timeout.
DEFAULT_S = 600.0
# Ours: a trigger, or the reload of the state, may take three times as long as planned before it counts as hung.
MARGIN = 3.0
_MB = 1_000_000


def progress_timeout_s(
    asked_s: float | None, *, trigger_s: float | None, restart_s: float, state_bytes: int, tasks_at_a_time: int
) -> float:
    """The limit of a job.

    Args:
        asked_s: that of the spec; None: the default.
        trigger_s: trigger interval; None: a bounded run.
        restart_s: planned duration of a restart, 0 without a load.
        state_bytes: planned state, which the first micro-batch after a restart reads; 0 if unknown.
        tasks_at_a_time: tasks that read it, one connection each.

    Returns:
        Seconds: what the spec asks for, else the largest of ten minutes, three triggers, three times the reading of the state, and the
        planned restart.
    """
    if asked_s is not None:
        return asked_s
    reload_s = state_bytes / (max(1, tasks_at_a_time) * DEFAULT_RELOAD_MB_PER_S * _MB)
    return max(DEFAULT_S, MARGIN * (trigger_s or 0.0), MARGIN * reload_s, restart_s)
