"""ControlledShutdown (Kafka 3.9), which kafka-python does not bring."""
