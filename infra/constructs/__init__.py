"""Constructs: what several resources make together, used by the stacks."""
