"""Records and positions in one transaction (KIP-618)."""
