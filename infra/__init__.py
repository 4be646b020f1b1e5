"""Infra: what a job stands on, as cdktf stacks. It knows the job spec and the plan, never Spark."""

if __name__ != "penstock.infra":
    raise ImportError(f"{__name__} is a part of Penstock here, not a package of its own: import penstock.infra")


import os

# jsii fills the screen about each Node.js past its end of life, as soon as it is imported; 20 is one that cdktf 0.21 was made for.
os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "20")
