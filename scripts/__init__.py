"""The ``penstock`` command and what runs the jobs, the emulated AWS and the broker. No other package imports it."""

if __name__ != "penstock.scripts":
    raise ImportError(f"{__name__} is part of Penstock and cannot be imported on its own; import penstock.scripts instead")
