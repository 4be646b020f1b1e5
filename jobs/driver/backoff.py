"""How long a driver that has failed waits before its next start, wherever it is not the kubelet that starts it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Backoff:
    """Seconds before the next start of a driver that has failed.

    Source: Kubernetes' documentation, "Pod Lifecycle", "Container restart policy": 10 s, 20 s, 40 s and so on, at most 5 minutes, and from
    the beginning after 10 minutes of running.

    Args:
        first_s: before the first restart, more than 0.
        longest_s: at most.
        forgotten_after_s: running time after which the next wait is the first again.
    """

    first_s: float = 10
    longest_s: float = 300
    forgotten_after_s: float = 600

    def wait_s(self, last_s: float, ran_s: float) -> float:
        """Seconds to wait.

        Args:
            last_s: waited before the driver that has ended; 0 if it was the first.
            ran_s: how long that one has run, in seconds.
        """
        if last_s == 0 or ran_s >= self.forgotten_after_s:
            return self.first_s
        return min(2 * last_s, self.longest_s)
