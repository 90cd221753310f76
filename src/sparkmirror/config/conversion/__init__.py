"""Between the forms that MirrorMaker 2 is configured in: mm2.properties, connector JSON, Strimzi."""
