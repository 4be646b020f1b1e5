"""Terraform on this machine: stacks synthesized, applied and destroyed."""
