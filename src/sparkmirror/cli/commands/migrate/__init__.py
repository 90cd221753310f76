"""`sparkmirror migrate`: consumer groups and producers move to the target of a flow."""
