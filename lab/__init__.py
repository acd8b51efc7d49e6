"""The lab: a real Kafka cluster on one machine, described by ``include/clusters/lab.yaml`` like any other cluster.

``python -m lab up`` starts ZooKeeper and the brokers from Maven's jars under supervisor; the controllers are defined
there and wait for the runbook to provision them. ``KRB_LAB_DIR`` and ``KRB_LAB_NET`` move it, so that two labs run side
by side. Nothing listens beyond the loopback network.
"""

from lab.layout import ROOT, environment, load, starts

__all__ = ["ROOT", "environment", "load", "starts"]
