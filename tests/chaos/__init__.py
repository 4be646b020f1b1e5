"""Kills, and what is left of a job after them."""
