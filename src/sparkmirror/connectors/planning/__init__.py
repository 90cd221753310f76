"""What surrounds the data, planned: pure comparisons of both clusters, and a flow's whole plan as a value."""
