"""The lab with a second Kafka beside the first, to which its nodes can go on: what its cluster file says then."""

from __future__ import annotations

from pathlib import Path

from kraft_runbook.cluster.operation_settings import UpgradeSoftware
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_parts import Software
from lab.installation import kafka4_version
from lab.layout import ROOT, layout

LOOKS_APART = 2
"""Seconds: the lab's clients are all new, and nobody shall wait for them."""


def with_kafka4(spec: ClusterSpec, version: str = "") -> ClusterSpec:
    """The same lab, each node started through a link of its own, and Kafka 4 installed beside. Without ZooKeeper's
    part nothing of it would run: the lab itself still begins there. ``version``: where it is not the one of
    ``lab/kafka4/pom.xml``.
    """
    version = version or kafka4_version()
    target = Software(version=version, home=str(layout(spec).directory / f"kafka-{version}"))

    def link(service: str) -> dict[str, str]:
        return {"home_link": str(layout(spec).directory / service / "kafka")}

    return spec.model_copy(
        update={
            "kafka": spec.kafka.model_copy(update={"upgrade_to": target}),
            "upgrade_software": UpgradeSoftware(old_clients_window=LOOKS_APART),
            "brokers": tuple(each.model_copy(update=link(each.service)) for each in spec.brokers),
            "controllers": tuple(each.model_copy(update=link(each.service)) for each in spec.controllers),
        }
    )


def write_cluster_file(directory: Path, version: str = "") -> Path:
    """``lab.yaml`` of such a lab once its migration is final: with the second Kafka, and without ZooKeeper."""
    place = "${KRB_LAB_DIR:-${PROJECT_ROOT}/build/lab}"
    version = version or kafka4_version()
    before, _, rest = (ROOT / "include" / "clusters" / "lab.yaml").read_text().partition("zookeeper:\n")
    text = before + rest[rest.index("reach:") :]
    text = text.replace(
        f"  home: {place}/kafka\n",
        f'  home: {place}/kafka\n  upgrade_to: {{version: {version}, home: "{place}/kafka-{version}"}}\n',
    )
    lines = [f"upgrade_software: {{old_clients_window: {LOOKS_APART}}}"]
    for line in text.splitlines():
        lines.append(line)
        if line.startswith("    service: "):
            lines.append(f"    home_link: {place}/{line.split()[1]}/kafka")
    directory.mkdir(parents=True, exist_ok=True)
    found = directory / "lab.yaml"
    found.write_text("\n".join(lines) + "\n")
    return found
