"""Metrics of the mirror and their HTTP endpoint.

A per-partition metric is counted in `copy.partition_copy`, reported by `copy.state_writer` as a field of
`storage.progress`, totalled in `source_meter`, and named in `families`, which has every metric.
"""
