"""Kafka: the only importer of its clients."""
