"""Runs connectors: flows, schedules, generations, orderly stop."""
