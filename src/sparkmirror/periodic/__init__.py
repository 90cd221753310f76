"""Threads of the driver that run periodic jobs, and log failures and findings once, not at each turn."""
