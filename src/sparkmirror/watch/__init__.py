"""Watches mirrors from Kafka alone, Java's or this one: it only reads, and needs no Spark."""
