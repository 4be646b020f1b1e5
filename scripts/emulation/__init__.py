"""The emulated AWS: moto as a process of its own, completed by what it lacks."""
