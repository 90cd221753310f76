"""Running flows: connectors, copy jobs, dedicated mode."""
