"""Topics, configs, ACLs and metadata of one cluster."""
