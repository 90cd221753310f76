"""Rules that users choose: names of mirrored topics, topic, group and config filters, rate limits. Pure."""
