"""From a load to what carries it, and from what is there to the load that it carries."""
