"""`sparkmirror plan`: what a mirror would do, before it does it."""
