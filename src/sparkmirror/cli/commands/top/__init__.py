"""`sparkmirror top`: what a mirror does now, as tables in a terminal."""
