"""Reads and writes the state topics of a mirror, in MM2's and this project's bytes."""
