"""Topics, configs, ACLs and accounts of the target: planned from both clusters, then applied."""
