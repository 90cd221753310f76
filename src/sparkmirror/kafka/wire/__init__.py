"""Requests and responses that are encoded and decoded by hand, and error codes."""
