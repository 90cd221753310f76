"""Topics, configs and ACLs of the target: planned from both clusters, then applied."""
