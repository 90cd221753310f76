"""Promotion of copies to originals, and failback."""
