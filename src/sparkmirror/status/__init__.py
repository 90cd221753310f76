"""Reads how a mirror is from Kafka alone, Java's or this one: it only reads, and needs no Spark."""
