"""Mirrored topics that are recreated with their source's offsets."""
