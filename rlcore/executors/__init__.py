"""Executors that come with rlcore."""
