"""Terraform on this machine: stacks are synthesized, planned, applied and destroyed."""
