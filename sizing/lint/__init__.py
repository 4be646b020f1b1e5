"""Lint: detects valid but risky configuration before the rollout.

`subject` models the configuration, a `rule` describes a problem, its consequence and its fix, and `lint` runs all rules. The rules of
one kind share a module: `node_pools`, `pods`, `manifests`, `spark_conf`, `jobs` and `versions`. No module reads the clock: the current
date is an argument.
"""
