"""Memory and disk of the driver and the executors at the plan's size, in control groups with the plan's limits."""
