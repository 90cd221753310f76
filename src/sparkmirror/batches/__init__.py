"""Record batches and the records in them, as functions over bytes. Pure."""
