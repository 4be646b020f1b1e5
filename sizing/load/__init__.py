"""From a load to the resources that carry it, and from resources to the load that they sustain."""
