"""Asks both clusters what a flow would do, and why a topic is where it is; changes nothing."""
