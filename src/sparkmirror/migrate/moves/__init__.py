"""Moves of consumer groups and producers to a flow's target."""
