"""Lint: what is allowed and still a mistake, found before the rollout.

`subject` is what is looked at, a `rule` says what is wrong with it, why and what to do, and `lint` runs all the rules. The rules of one
kind share a module: `node_pools`, `pods`, `manifests`, `spark_conf`, `jobs` and `versions`. Nothing here reads a clock: today is an
argument.
"""
