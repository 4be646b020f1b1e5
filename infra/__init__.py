"""The infrastructure of jobs as cdktf stacks. Depends on the job spec and the plan, never on Spark."""

if __name__ != "penstock.infra":
    raise ImportError(f"{__name__} is part of Penstock and cannot be imported on its own; import penstock.infra instead")


import os

# On import, jsii prints a long warning for each Node.js version past its end of life; cdktf 0.21 was built for version 20.
os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "20")
