"""The commands; the only place where objects are wired together."""
