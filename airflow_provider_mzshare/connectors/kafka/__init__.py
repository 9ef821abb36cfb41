"""Kafka: one topic as an upstream."""
