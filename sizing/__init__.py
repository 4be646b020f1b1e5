"""Sizing: the resources that a streaming job needs, computed from its targets alone.

Pure: pydantic and the standard library; no clock, network, environment variable, Spark or cdktf.
"""

if __name__ != "penstock.sizing":
    raise ImportError(f"{__name__} is a part of Penstock here, not a package of its own: import penstock.sizing")
