"""ZooKeeper: its connection, reads of Kafka's tree, and the few writes."""
