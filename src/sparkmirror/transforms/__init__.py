"""Connect's transforms in a mirror: chains read from properties, and applied to a partition's batches."""
