"""A node of a Connect worker: what it keeps, who leads, and what a leader runs."""
