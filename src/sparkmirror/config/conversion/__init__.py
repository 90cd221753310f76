"""Conversion between the forms of configuration: mm2.properties, connector JSON, Strimzi."""
