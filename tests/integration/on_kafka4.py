"""A finalized lab with Kafka 4 installed beside 3.9, and its nodes switched by hand from one to the other."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import by_hand
import kept_states
from labs import Lab, describe_new_lab

from kraft_runbook.cluster.feature_levels import (
    METADATA_VERSION,
    FeatureObservation,
    LevelsInLog,
    NodeFeatures,
    SoftwareLevels,
)
from kraft_runbook.cluster.observation import Unread
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec_nodes import Broker, Controller
from kraft_runbook.errors import Refused
from kraft_runbook.io.hosts.inventory import node_of
from kraft_runbook.io.kafka.feature_calls import Answer, UpgradeType, node_features, read_levels, update_feature
from kraft_runbook.io.local import supervision
from kraft_runbook.levels.change import plan_change
from kraft_runbook.levels.obstacles import obstacles, running_software
from kraft_runbook.procedures.observe_features import observe_features
from kraft_runbook.runbook.obstacle import Obstacle
from lab import ROOT, lifecycle
from lab.installation import fetch_jars, install, java, kafka4_version
from lab.layout import layout
from lab.software import LOOKS_APART, with_kafka4


@contextmanager
def finalized_lab(
    *,
    controllers: Mapping[str, str] | None = None,
    brokers: Mapping[str, str] | None = None,
    on_new: Collection[int] = (),
    version: str = "",
) -> Iterator[Lab]:
    """A lab in FINALIZED, every node on 3.9 through a link of its own; ended and removed afterwards. Its cluster file
    still names ZooKeeper, which nobody uses and which is not started.

    ``controllers``, ``brokers``: further properties of each. ``on_new``: the nodes that are on 4.x already, as a roll
    leaves them that was interrupted. ``version``: of that 4.x, where it is not the lab's own.
    """
    plain = describe_new_lab()
    spec = with_kafka4(plain.spec, version)
    spec = spec.model_copy(
        update={
            "controller_properties": {**spec.controller_properties, **(controllers or {})},
            "broker_properties": {**spec.broker_properties, **(brokers or {})},
        }
    )
    lab = replace(plain, spec=spec)
    try:
        kept_states.put(Phase.FINALIZED, spec)
        install(spec, jars=fetch_jars(spec.kafka.version), java_command=java())
        for node_id in on_new:
            link(lab, node_id, _target(lab))
        kept_states.start(Phase.FINALIZED, lab)
        yield lab
    finally:
        lifecycle.down(spec, purge=True)


def with_target(
    born: str, directory: Path, further: str = "", *, now: tuple[str, str] | None = None, version: str = ""
) -> Path:
    """The directory, with the cluster file of a lab that is born in KRaft (``lab/both``, ``lab/dynamic``) and a Kafka 4
    beside. ``further``: more of the file. ``now``: version and home of what its nodes run, where it is not the 3.9 of
    the file itself; ``version``: of what lies beside, where it is not the lab's own.
    """
    place = "${KRB_LAB_DIR:-${PROJECT_ROOT}/build/lab}"
    text = (ROOT / "lab" / born / "lab.yaml").read_text()
    version = version or kafka4_version()
    home, target = f"{place}/kafka", f'  upgrade_to: {{version: {version}, home: "{place}/kafka-{version}"}}\n'
    text = text.replace(f"  home: {home}\n", f"  home: {now[1] if now else home}\n{target}")
    if now:
        text = text.replace("  version: ${KRB_LAB_KAFKA:-3.9.2}\n", f"  version: {now[0]}\n")
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "lab.yaml").write_text(f"{text}upgrade_software: {{old_clients_window: {LOOKS_APART}}}\n{further}")
    return directory


def _target(lab: Lab) -> str:
    assert lab.spec.kafka.upgrade_to is not None
    return lab.spec.kafka.upgrade_to.home


def link(lab: Lab, node_id: int, home: str) -> None:
    """Lead a node's link there. Its process, if it runs, is not touched."""
    home_link = node_of(lab.spec, node_id).home_link
    assert home_link is not None
    Path(home_link).unlink()
    Path(home_link).symlink_to(home)


def look(lab: Lab) -> FeatureObservation:
    return observe_features(lab.spec, secrets=lab.secrets)


def software(seen: FeatureObservation, home: str) -> SoftwareLevels:
    """What the jar in ``home`` knows, as the first host read it."""
    host = next(iter(seen.hosts.values()))
    assert not isinstance(host, Unread), host
    found = host.software[home]
    assert isinstance(found, SoftwareLevels), found
    return found


def leader(lab: Lab) -> int:
    return read_levels(lab.spec, secrets=lab.secrets)[0]


def versions(lab: Lab) -> set[str]:
    """What the nodes run, by their own metrics; of one that did not answer, why."""
    nodes = look(lab).nodes.values()
    return {str(node.software_version) if isinstance(node, NodeFeatures) else node.reason for node in nodes}


def set_level(lab: Lab, level: int, *, feature: str = METADATA_VERSION, down: bool = False) -> None:
    """Change a level for real, and wait until every node shows it. What the server refuses fails the test."""
    kind = UpgradeType.SAFE_DOWNGRADE if down else UpgradeType.UPGRADE
    answer = update_feature(lab.spec, leader(lab), feature, level, kind, validate_only=False, secrets=lab.secrets)
    assert answer.accepted, answer.refusal
    shown_everywhere(lab, level, feature=feature)


def ask_every_level(lab: Lab, seen: FeatureObservation, feature: str, targets: range) -> dict[int, Answer]:
    """Ask the leader by validate-only for each target but the level that holds, and compare what it says with what the
    plan says; the answers. A disagreement fails the test.
    """
    software = running_software(seen)
    assert not isinstance(software, Obstacle) and isinstance(seen.log, LevelsInLog), software
    assert isinstance(seen.leader_id, int)
    now, answers = seen.log.levels.get(feature, 0), {}
    for target in (each for each in targets if each != now):
        try:
            change = plan_change(software, feature, now, str(target))
            ours = "; ".join(each.problem for each in obstacles(seen, change, software) if not each.server_accepts)
        except Refused as error:
            ours = error.problem
        kind = UpgradeType.SAFE_DOWNGRADE if target < now else UpgradeType.UPGRADE
        answer = update_feature(
            lab.spec, seen.leader_id, feature, target, kind, validate_only=True, secrets=lab.secrets
        )
        words = f"{feature} {now} -> {target}: we say {ours!r}, the server {answer.refusal!r}"
        assert answer.accepted == (not ours), words
        answers[target] = answer
    return answers


def shown_everywhere(lab: Lab, level: int, *, feature: str = METADATA_VERSION) -> None:
    def shown() -> bool:
        nodes = [node_of(lab.spec, each) for each in lab.spec.node_ids]
        return all(
            node_features(lab.spec, node, secrets=lab.secrets).finalized.get(feature, 0) == level for node in nodes
        )

    by_hand.wait_until(f"every node shows {feature} {level}", shown, within=30)


def switch(lab: Lab, node_id: int, home: str, *, properties: Mapping[str, str] | None = None) -> None:
    """Stop a node, lead its link to ``home``, and start it. Does not wait for more than its process.

    ``properties``: the whole of its configuration from now on.
    """
    node, here = node_of(lab.spec, node_id), layout(lab.spec)
    if supervision.processes(here)[node.service].runs:
        supervision.begin_stop(here, node.service)
        ended(lab, node, within=330)
    link(lab, node_id, home)
    if properties is not None:
        by_hand.write(node, dict(properties))
    supervision.begin_start(here, node.service)


def ended(lab: Lab, node: Broker | Controller, *, within: float = 60) -> None:
    here = layout(lab.spec)
    by_hand.wait_until(
        f"{node.service} ends", lambda: not supervision.processes(here)[node.service].runs, within=within
    )


def answers(lab: Lab, node_id: int, version_knows: Callable[[NodeFeatures], bool], *, within: float = 60) -> None:
    """Wait until the node answers with what that says of it."""
    node = node_of(lab.spec, node_id)
    by_hand.wait_until(
        f"{node.service} answers as wanted",
        lambda: version_knows(node_features(lab.spec, node, secrets=lab.secrets)),
        within=within,
    )


def log_requests(lab: Lab, broker_id: int) -> None:
    """Let a broker of 3.9 log who asks in deprecated versions, without a restart, as docs/software.md says."""
    command = [
        *(f"{lab.spec.kafka.home}/bin/kafka-run-class.sh", "kafka.admin.ConfigCommand"),
        *("--bootstrap-server", lab.spec.broker_address(lab.spec.broker(broker_id)), "--alter"),
        *("--entity-type", "broker-loggers", "--entity-name", str(broker_id)),
        *("--add-config", "kafka.request.logger=INFO"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def log_of(lab: Lab, node_id: int, *, lines: int = 200) -> str:
    return supervision.log_tail(layout(lab.spec), node_of(lab.spec, node_id).service, lines=lines)


def wait_for_log(lab: Lab, node_id: int, words: str, *, within: float = 300) -> str:
    """The end of the node's log once those words are in it."""
    deadline = time.monotonic() + within
    while words not in (said := log_of(lab, node_id)):
        assert time.monotonic() < deadline, f"{words!r} is not in the log:\n{said}"
        time.sleep(0.3)
    return said
