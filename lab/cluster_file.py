"""The lab's cluster file with other brokers: as many as wanted, each in a rack."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path

import yaml

from lab.layout import ROOT


def write_cluster_file(directory: Path, *, racks: Sequence[str], disks: int = 1) -> Path:
    """Write ``lab.yaml`` below ``directory``: the lab's own, with one broker for each of ``racks``, in their order.

    Give the directory to the lab as ``KRB_LAB_CLUSTERS`` and to the tool as ``KRAFT_RUNBOOK_CLUSTERS``. Returns the
    file. Brokers are at the addresses 11, 12, … of the lab's network; controllers begin at 101. ``disks``: log
    directories of each broker.
    """
    document = yaml.safe_load((ROOT / "include" / "clusters" / "lab.yaml").read_text())
    first = document["brokers"][0]
    document["brokers"] = [_like(first, number, rack) for number, rack in enumerate(racks, 1)]
    for broker in document["brokers"]:
        (own,) = broker["log_dirs"]
        broker["log_dirs"] = [own, *(f"{own}-{number}" for number in range(2, disks + 1))]
    document["description"] = f"The lab with {len(racks)} brokers in {len(set(racks))} racks"
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "lab.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False).replace("${PROJECT_ROOT}", str(ROOT)))
    return path


def _like(first: dict[str, object], number: int, rack: str) -> dict[str, object]:
    """Broker 1 of the lab as broker ``number``."""

    def renamed(value: object) -> object:
        if isinstance(value, str):
            return value.replace("broker-1", f"broker-{number}")
        return [renamed(each) for each in value] if isinstance(value, list) else value

    found = {key: renamed(value) for key, value in copy.deepcopy(first).items()}
    host = str(first["host"]).rpartition(".")[0]
    return found | {"id": number, "host": f"{host}.{10 + number}", "rack": rack}
