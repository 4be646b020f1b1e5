"""A team's own package, named as teams name it: nothing of Penstock may stand in its way."""
