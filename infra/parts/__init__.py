"""The parts of an environment, one concept per module."""
