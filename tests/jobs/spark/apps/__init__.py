"""Apps of the tests."""
