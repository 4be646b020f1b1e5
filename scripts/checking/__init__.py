"""Checks apps against their specs before anything is started for them."""
