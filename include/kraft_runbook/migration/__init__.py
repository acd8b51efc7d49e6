"""The migration off ZooKeeper (KIP-866) and its way back: phases, steps, gates, waits, checks."""
