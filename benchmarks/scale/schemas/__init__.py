"""AlterPartition, by which a leader tells its partition's ISR, from Kafka 3.9's own schema, in the JSON form that
kafka-python reads.
"""
