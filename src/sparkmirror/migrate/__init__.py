"""Migration of consumer groups and producers from one cluster to the other."""
