"""Options declared once, and every layer of mm2.properties."""
