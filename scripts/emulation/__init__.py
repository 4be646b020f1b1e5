"""The emulated AWS: moto in a separate process, with the services and behaviour that it lacks."""
