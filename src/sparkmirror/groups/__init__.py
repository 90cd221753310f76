"""Consumer groups: checkpoints, group offset sync, and explanations of translated offsets."""
