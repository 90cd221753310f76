"""Commands for the REST API of any Connect worker, Java's included: `sparkmirror connectors`."""
