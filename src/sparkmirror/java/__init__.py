"""The Java that brokers and Spark run on: found, its jars fetched, its classes archived."""
