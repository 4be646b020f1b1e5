"""The object key of a stack's state in its bucket."""

from __future__ import annotations


def state_key(environment_name: str, stack: str) -> str:
    """The object of a stack's state; its lock has the same key with the suffix ``.tflock``.

    Args:
        environment_name: of the environment, because several may share a bucket.
        stack: the stack's id.
    """
    return f"{environment_name}/{stack}.tfstate"
