"""Everything Spark: the session, jobs, and the copy task that an executor runs."""
