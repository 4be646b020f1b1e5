"""From a command line to plans: specs, prices, the catalog of instance types."""
