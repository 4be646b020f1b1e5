"""Keyed state: functions of an app's own with state and timers for each key, and the blocks that are made of them."""
