"""Tools for developers of Penstock: the test tiers and the generated reference pages."""
