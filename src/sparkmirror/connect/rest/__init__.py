"""Kafka Connect's REST API, served over the node's herder.

An endpoint is a route with its handler in the module of its path (`connectors`, `connector_plugins`,
`loggers`, `worker_info`), and its description in `openapi.json`. If it needs more of the worker,
`connect.herder` has the method.
"""
