"""Record batches and the records in them: pure functions over bytes, without I/O."""
