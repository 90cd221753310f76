"""Makes one value of what a mirror does, for pages, JSON and the terminal, from `metrics.looks`. Pure."""
