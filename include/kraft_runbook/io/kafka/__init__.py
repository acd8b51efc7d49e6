"""Brokers and controllers, by Kafka's protocol."""
