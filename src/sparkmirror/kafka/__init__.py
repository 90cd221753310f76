"""The border to Kafka: connections, raw fetch and produce, admin, log reader, error translation."""

from sparkmirror.kafka.wire import library_codecs  # noqa: F401 - before the first message is read or written
