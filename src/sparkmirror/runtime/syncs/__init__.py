"""Makes what surrounds the data on the target follow the source: each has a `plan()` and an `apply()`."""
