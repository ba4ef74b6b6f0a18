"""Runs: settings, the run directory, metrics, evaluation."""
