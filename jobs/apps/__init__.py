"""The jobs that Penstock ships; each only connects blocks."""
