"""Graph backends that come with rlcore."""
