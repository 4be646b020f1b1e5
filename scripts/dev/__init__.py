"""What developers of Penstock run: the test tiers and the generated reference pages."""
