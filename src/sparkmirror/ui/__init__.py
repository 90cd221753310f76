"""The web pages: HTML made from the view, and streams that keep open pages current."""
