"""Which nodes Karpenter makes for pods: its requirements, its order, its claims and what it sends to EC2.

The rules are those of karpenter v1.14.1 and karpenter-provider-aws v1.14.1, read from their sources and held against decisions of the
real code. `scenario` is what a user gives, `place` decides one batch, `staged` batch after batch.
"""
