"""Keys, certificates and TLS contexts."""
