"""Connections to brokers: transports, TLS, logins, frames, and the metadata that they need."""
