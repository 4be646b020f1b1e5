"""What Penstock needs beside its own Python packages: fetched from locks, once, into a cache of the user's."""
