"""The controllers that a run's trigger form names as gone for good with their hosts."""

from __future__ import annotations

from kraft_runbook.cluster.naming import name_ids
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused

GONE_TITLE = "Controllers whose hosts are gone"


def named_as_gone(text: str, spec: ClusterSpec) -> frozenset[int]:
    """The controllers that this text of the form names. Raises Refused where it names anything else."""
    words = text.replace(",", " ").split()
    wrong = [word for word in words if not word.isdigit() or int(word) not in spec.controller_ids]
    if wrong:
        raise Refused(
            f"'{GONE_TITLE}' names {', '.join(wrong)}; the cluster file's controllers are"
            f" {name_ids(spec.controller_ids)}",
            way_out="trigger the rollback again with their ids",
        )
    return frozenset(map(int, words))
