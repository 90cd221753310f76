"""`sparkmirror connectors`: Connect's REST API as commands, Java's workers included."""
