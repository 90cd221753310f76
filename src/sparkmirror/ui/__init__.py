"""The web pages: HTML of a view (`view`), sent again while somebody looks. They change nothing."""
