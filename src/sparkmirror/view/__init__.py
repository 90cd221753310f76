"""What a mirror does, as one value for all who look: made of `metrics.looks`, without a clock. Pure."""
