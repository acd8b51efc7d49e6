"""The toggle of a group of migrating members between ZooKeeper's assignment and Kafka's, and back (KIP-125): what it
needs, whether it has settled, many groups on a schedule, and what is alarming. Pure: values in, values out.
"""
