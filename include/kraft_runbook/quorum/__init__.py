"""The health of the controller quorum, and of ZooKeeper's controller before it: what one look shows, and what is
wrong.
"""
