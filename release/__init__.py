"""Builds what a release consists of: `make package` and `make docs`."""
