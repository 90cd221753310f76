"""Comparison of source and target, record by record.

`verification_run` verifies flows: `flow_partitions` and `range_planning` choose what to compare, `spark_job`
or `child_process` runs it. `range_comparison` reads a range, `record_comparison` compares it, and `verdict`
judges.
"""
