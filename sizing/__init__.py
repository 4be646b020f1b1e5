"""Sizing: the resources that a streaming job needs, computed from its targets alone.

Pure: pydantic and the standard library; no clock, network, environment variable, Spark or cdktf.
"""

if __name__ != "penstock.sizing":
    raise ImportError(f"{__name__} is part of Penstock and cannot be imported on its own; import penstock.sizing instead")
