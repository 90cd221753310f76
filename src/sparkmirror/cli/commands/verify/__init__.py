"""`sparkmirror verify`: proves that what a flow has mirrored is the same on both clusters."""
