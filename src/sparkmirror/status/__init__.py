"""Reads the state of a mirror from Kafka alone, Java's included; writes nothing, and needs no Spark."""
