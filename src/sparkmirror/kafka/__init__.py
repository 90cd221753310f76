"""The border to Kafka: connections, raw fetch and produce, admin, log reader, error translation."""
