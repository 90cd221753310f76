"""Consumer groups and the group of the workers."""
