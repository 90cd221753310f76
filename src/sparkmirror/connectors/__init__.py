"""Settings and rules of the three MirrorMaker connectors."""
