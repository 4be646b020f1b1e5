"""What the state of a stack is called in its bucket."""

from __future__ import annotations


def state_key(environment_name: str, stack: str) -> str:
    """The object of a stack's state; its lock is the same with ``.tflock`` at the end.

    Args:
        environment_name: of the environment, for several may share a bucket.
        stack: the stack's id.
    """
    return f"{environment_name}/{stack}.tfstate"
