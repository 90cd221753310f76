"""Kafka Connect's REST API, served over whatever node runs the connectors."""
