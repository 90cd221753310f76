"""Values that all packages share, and the errors. Pure."""
