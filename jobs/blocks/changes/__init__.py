"""Results as changes: rows that appear, and rows that are taken back."""
