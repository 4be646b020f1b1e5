"""Plans and their costs as tables, pictures and pages."""
