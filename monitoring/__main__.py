"""Writes rules, `monitoring/dashboards/` and `docs/runbooks.md`: `python -m monitoring`."""

from monitoring.files import ROOT, rendered

if __name__ == "__main__":
    for path, text in rendered().items():
        (ROOT / path).write_text(text, encoding="utf-8")
