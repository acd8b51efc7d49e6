"""Whether ZooKeeper and the metadata log hold the same: the argument, the comparison, the proof."""
