"""Topics, configs, ACLs, accounts and metadata of one cluster."""
