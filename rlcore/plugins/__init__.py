"""Finding and calling plugins."""
