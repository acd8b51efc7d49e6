"""A cluster of any size for measurements: a real ZooKeeper, real controllers, and stand-ins in place of the data
brokers.

``python -m benchmarks.scale up --partitions 20000`` writes the tree as a ZooKeeper snapshot (``tree``), starts
ZooKeeper and the controllers from Maven's jars (``processes``, ``cluster``), registers the stand-ins (``ghosts``) and
waits for Kafka's own copy and for dual write (``measure``). What comes out of it, the metadata log, its offsets and the
znodes, is Kafka's own. A cluster file is left beside it, so that everything else runs against it as against any
cluster.
"""
