"""A module that can't be imported."""

raise RuntimeError("no licence\nfor this machine")
