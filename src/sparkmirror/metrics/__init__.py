"""Metrics of the mirror and their HTTP endpoint."""
