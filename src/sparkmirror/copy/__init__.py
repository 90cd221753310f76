"""The copy task: partitions are fetched from the source, written to the target, and resumed."""
