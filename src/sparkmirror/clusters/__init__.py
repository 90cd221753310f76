"""Real local Kafka brokers for demo, tests and benchmarks."""
