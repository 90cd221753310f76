"""Compares two logs that should hold the same records: what makes records equal, and how they are matched."""
