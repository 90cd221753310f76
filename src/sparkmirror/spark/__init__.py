"""The Spark session, its executors, and the archive of Python packages they need."""
