"""What controlled shutdown and controller failover cost in ZooKeeper mode and in KRaft mode: the same assignments, the
same stand-ins for brokers, one run of the one after one run of the other.
"""
