"""Connections to brokers: transports, TLS, logins, frames."""
