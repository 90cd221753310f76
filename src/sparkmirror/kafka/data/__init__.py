"""Record batches read from and written to partitions."""
