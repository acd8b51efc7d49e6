"""The newest Kafka whose records this tool knows, at each level past those of the lab's own: what is written there is
read, and a level beyond is refused before it is raised.
"""

from __future__ import annotations

from collections.abc import Iterator

import on_kafka4
import pytest
from labs import Lab

from kraft_runbook.cluster.feature_levels import METADATA_VERSION, LevelsInLog, SoftwareLevels
from kraft_runbook.cluster.observation import was_read
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.levels import obstacles
from kraft_runbook.levels.obstacles import running_software
from kraft_runbook.metadata.log import record_schemas
from kraft_runbook.metadata.log.record_schemas import not_read
from kraft_runbook.metadata.metadata_version import LEVELS, NEWEST_LEVEL
from kraft_runbook.procedures.observe import observe
from kraft_runbook.procedures.preview_levels import preview_change
from kraft_runbook.software.explain import explain
from lab.installation import NEWEST

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def newest() -> Iterator[Lab]:
    with on_kafka4.finalized_lab(on_new=(1, 2, 3, 101, 102, 103), version=NEWEST) as lab:
        yield lab


def test_its_levels_and_records_are_those_that_this_tool_knows(newest: Lab) -> None:
    found = running_software(on_kafka4.look(newest))
    assert isinstance(found, SoftwareLevels) and found.version == NEWEST, found
    table = found.features[METADATA_VERSION]
    known = {each.name: each.number for each in table.levels if each.number in table.supported}
    assert known == {name: level for name, level in LEVELS.items() if level >= table.supported.lowest}
    assert max(known.values()) == NEWEST_LEVEL
    assert was_read(found.records) and not_read(found.records) == ()


def test_a_level_whose_records_are_not_known_is_refused_though_the_leader_accepts(
    newest: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same cluster, looked at by a tool that knows Kafka up to 4.2 alone."""
    on_kafka4.set_level(newest, 29)
    older = {kind: each for kind, each in record_schemas.SCHEMAS.items() if each.name != "UnregisterControllerRecord"}
    monkeypatch.setattr(record_schemas, "SCHEMAS", older)
    monkeypatch.setattr(obstacles, "NEWEST_LEVEL", 29)
    preview = preview_change(newest.spec, on_kafka4.look(newest), METADATA_VERSION, "30", secrets=newest.secrets)
    assert preview.answer is not None and preview.answer.accepted and not preview.may_go, preview.render_text()
    assert "metadata.version 30 is beyond what this tool knows" in preview.render_text()
    assert "UnregisterControllerRecord" in preview.render_text()


@pytest.mark.parametrize("level", range(30, NEWEST_LEVEL + 1))
def test_each_level_is_raised_and_the_cluster_is_read_as_before(newest: Lab, level: int) -> None:
    """Measured with schemas of 4.2: BrokerRegistrationChangeRecord version 3 right after 30 ended every look."""
    preview = preview_change(newest.spec, on_kafka4.look(newest), METADATA_VERSION, str(level), secrets=newest.secrets)
    assert preview.may_go, preview.render_text()
    on_kafka4.set_level(newest, level)
    spec = newest.spec.model_copy(update={"zookeeper": None})
    seen = observe(spec, secrets=newest.secrets)
    assert detect_phase(seen).phase is Phase.KRAFT or detect_phase(seen).phase is Phase.FINALIZED
    assert was_read(seen.quorum) and seen.quorum.metadata_version == level
    assert set(seen.quorum.registrations) == set(spec.broker_ids)
    log = on_kafka4.look(newest).log
    assert isinstance(log, LevelsInLog) and log.levels[METADATA_VERSION] == level
    assert explain(seen, spec).rollback.answer == "no"


def test_a_node_that_starts_anew_at_the_newest_level_writes_what_is_read(newest: Lab) -> None:
    """RegisterBrokerRecord of its newest version."""
    assert newest.spec.kafka.upgrade_to is not None
    before = registered(newest, 3)
    on_kafka4.switch(newest, 3, newest.spec.kafka.upgrade_to.home)
    on_kafka4.answers(newest, 3, lambda _: registered(newest, 3) != before, within=120)


def registered(lab: Lab, node_id: int) -> str:
    log = on_kafka4.look(lab).log
    assert isinstance(log, LevelsInLog), log
    return log.brokers[node_id].incarnation_id
