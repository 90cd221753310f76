"""Comparison of source and target, record by record."""
