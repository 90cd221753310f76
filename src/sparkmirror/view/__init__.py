"""What a mirror does as one value, for pages, JSON and the terminal: made from `metrics.looks`. Pure."""
