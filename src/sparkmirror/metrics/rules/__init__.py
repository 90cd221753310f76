"""Names for Java's metrics: rules as Prometheus' JMX exporter reads them."""
