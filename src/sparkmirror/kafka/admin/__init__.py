"""Topics, configs, ACLs and accounts of one cluster."""
