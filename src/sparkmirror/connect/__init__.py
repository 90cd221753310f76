"""A Connect worker: herder, leader, REST API and Connect's internal topics.

The herder serves requests, the leader runs connectors. A task is FAILED when its run's `failures` names it
(`mirror.connector_runs`): for a source connector, when one of its partitions is in the state FAILED.
"""
