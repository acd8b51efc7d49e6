"""The requests by which a broker registers and keeps alive (KIP-631), from Kafka 3.9's own schemas, in the JSON form
that kafka-python reads.
"""
