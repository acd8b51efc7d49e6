"""A consumer that coordinates through ZooKeeper and moves to Kafka's coordination, and back, while it runs (KIP-125).

It imports nothing of ``kraft_runbook``: an application needs kazoo and confluent-kafka beside it.
"""
