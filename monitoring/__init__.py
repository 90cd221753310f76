"""Grafana dashboards, Prometheus rules and runbooks for sparkmirror; `python -m monitoring` writes the files."""
