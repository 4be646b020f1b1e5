"""Simulates Karpenter: its requirements, its order, the node claims that it creates for pods, and its requests to EC2.

The rules are those of karpenter v1.14.1 and karpenter-provider-aws v1.14.1, taken from their sources and compared with recorded
decisions of the real code. `scenario` is the input, `place` decides one batch, `staged` one batch after another.
"""
