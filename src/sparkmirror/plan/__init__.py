"""The plan of a flow, as `sparkmirror plan` shows it."""
