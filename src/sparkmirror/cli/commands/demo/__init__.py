"""`sparkmirror demo`: two real clusters, a busy shop, a mirror, and the proof that nothing was lost."""
