"""What the shipped jobs are fed with by ``penstock up``, and what must come out, computed without Spark."""
