"""Sizing: what a streaming job needs, from its targets alone.

Pure: pydantic and the standard library; no clock, network, environment variable, Spark or cdktf.
"""
