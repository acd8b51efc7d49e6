"""A Spark master on other machines is used only where all that goes between them is encrypted, and each side proves
that it knows a secret.

What a job sends its workers holds the passwords with which they read ZooKeeper, and Spark sends it as plain text to
whoever joins (``spark.authenticate`` and ``spark.network.crypto.enabled`` are false by default; Spark's security page).
"""

from __future__ import annotations

from collections.abc import Mapping

from kraft_runbook.errors import Refused

NEEDED: Mapping[str, tuple[str, ...]] = {
    "who joins proves that it knows a secret": ("spark.authenticate",),
    "what goes over the network is encrypted": ("spark.network.crypto.enabled", "spark.ssl.rpc.enabled"),
    "what is written to disk is encrypted": ("spark.io.encryption.enabled",),
}
"""What must be so, and which settings make it so, each by itself."""

DEFAULTS = {"spark.network.crypto.saslFallback": "false"}
"""What a job on another master has besides, where nobody chose otherwise: Spark's default lets a peer ask for less."""


def is_local(master: str) -> bool:
    """Whether driver and workers are processes of this machine (``local[*]``, ``local-cluster[…]``)."""
    return master.startswith("local")


def require_secured(master: str, chosen: Mapping[str, str]) -> None:
    """Raise Refused where a master on other machines would be used openly. ``chosen``: Spark's settings as they are."""
    if is_local(master):
        return
    on = {name for name, value in chosen.items() if value.strip().lower() == "true"}
    missing = {what: names for what, names in NEEDED.items() if not on & set(names)}
    if not missing:
        return
    settings = ", ".join(" or ".join(f"{name}=true" for name in names) for names in missing.values())
    raise Refused(
        f"the Spark master {master} is not secured: it is not set that {', that '.join(missing)}. The job would send"
        " the passwords for ZooKeeper to Spark's workers in the open",
        way_out=(
            f"set {settings} in the properties file that 'spark.properties_file' of the cluster file names, or in"
            " spark-defaults.conf, and the same at the master and its workers; or let the Spark connection lead to"
            " local[2] (docs/parity.md)"
        ),
    )
