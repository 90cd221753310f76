"""Connect's config, status and offset topics: records, readers and writers."""
