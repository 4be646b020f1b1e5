"""The jobs that Penstock ships, each only wiring."""
