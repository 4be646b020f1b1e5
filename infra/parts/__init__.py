"""The parts of an environment, one concept a module."""
