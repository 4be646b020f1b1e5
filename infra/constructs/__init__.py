"""Constructs: groups of resources that the stacks share."""
