"""Nodes that are broker and controller in one process: declared once, rendered once, restarted once, awaited as both;
refused by name where an operation is made for one role.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from feature_looks import all_registered, in_log
from observations import both, ended, observation, on_host, registration
from placements import of
from recording import Evidence, RecordingCluster, run_on

from kraft_runbook.cluster.cluster_file import load_cluster, parse_cluster
from kraft_runbook.cluster.config_meaning import ADVERTISED, alike, meaning
from kraft_runbook.cluster.feature_levels import METADATA_VERSION, FeatureObservation, NodeFeatures
from kraft_runbook.cluster.modes import ControllerMode
from kraft_runbook.cluster.node_properties import controller_properties, kraft_properties
from kraft_runbook.cluster.observation import ClusterObservation, Unread, was_read
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker, Controller
from kraft_runbook.cluster.spec_parts import ServiceManager, Software
from kraft_runbook.errors import ClusterFileError, Refused, StepFailed
from kraft_runbook.io.hosts.inventory import host_name, node_variables
from kraft_runbook.procedures.change_level import Calls, Pace, await_level
from kraft_runbook.procedures.demote_broker import Demoted, GivenBack, demote_broker, give_orders_back, keep_orders
from kraft_runbook.procedures.observe_features import observe_features
from kraft_runbook.procedures.require_readable import require_readable
from kraft_runbook.quorum.care_rules import Care, CareForm, whom
from kraft_runbook.quorum.faults import Fault, Form, aim
from kraft_runbook.restart.operation import RESTARTS, Step
from kraft_runbook.runbook.broker_files import broker_files, controller_files_in_kraft
from kraft_runbook.runbook.differing_files import differing_keys, render_bound
from kraft_runbook.runbook.host_checks import HOST_CHECKS
from kraft_runbook.software.roll import Rolled, read_roll_of
from kraft_runbook.steps.demotions import kept_for
from kraft_runbook.steps.node_step import take_step
from kraft_runbook.steps.registrations import register_anew
from kraft_runbook.steps.restart import BOTH_ROLES, restart_active_controller
from kraft_runbook.steps.software import BOTH_ROLES_BACK, BOTH_ROLES_UP, roll_active_controller, start_what_is_down
from kraft_runbook.steps.unregister_broker import prepare, unregister

FILE = Path(__file__).resolve().parents[2] / "lab" / "both" / "lab.yaml"
SPEC = load_cluster("lab", directory=FILE.parent, environment={"KRB_LAB_DIR": "/lab"})


def text_with(**changes: Any) -> str:
    return yaml.safe_dump({**yaml.safe_load(FILE.read_text()), **changes})


def parsed(**changes: Any) -> ClusterSpec:
    return parse_cluster(text_with(**changes), source="both", environment={"PROJECT_ROOT": "/project"})


def problems(**changes: Any) -> str:
    with pytest.raises(ClusterFileError) as wrong:
        parsed(**changes)
    return str(wrong.value)


# -- the cluster file --------------------------------------------------------------------------------------------------


def test_a_node_is_declared_once_and_is_in_both_views() -> None:
    assert (SPEC.broker_ids, SPEC.controller_ids, SPEC.both_ids) == ((1, 2, 3, 4), (1, 2, 3), (1, 2, 3))
    assert SPEC.node_ids == (1, 2, 3, 4) and [each.service for each in SPEC.nodes] == [
        "node-1",
        "node-2",
        "node-3",
        "node-4",
    ]
    assert SPEC.quorum_voters == "1@127.10.0.1:9093,2@127.10.0.2:9093,3@127.10.0.3:9093"
    assert [each.id for each in SPEC.rolled] == [4], "the others have their turn among the controllers"
    assert (SPEC.named(1), SPEC.named(4)) == ("node 1", "broker 4")


def test_a_spec_that_is_read_back_is_the_same() -> None:
    assert ClusterSpec.model_validate(SPEC.model_dump(mode="json")) == SPEC


def test_some_may_have_both_roles_and_others_one() -> None:
    alone = {"host": "127.10.0.9", "port": 9093, "log_dir": "/c/data", "config_file": "/c/c.properties"}
    spec = parsed(
        brokers=[{"id": "1-2", "controller": {"port": 9093}}, {"id": 4}],
        controllers=[{"id": 9, **alone, "service": "c-9", "metrics_port": 7071}],
    )
    assert (spec.both_ids, spec.controller_ids, spec.node_ids) == ((1, 2), (1, 2, 9), (1, 2, 4, 9))
    assert spec.controller(1).log_dir == spec.broker(1).log_dirs[0], "Kafka's default of metadata.log.dir"
    assert "metadata.log.dir" not in kraft_properties(spec, 1)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"zookeeper": {"servers": ["127.10.0.1:2181"]}}, "no migration from ZooKeeper runs with such nodes (KIP-866)"),
        ({"brokers": [{"id": "1-3"}]}, "no controller: name them here, or let brokers be controllers too"),
        ({"canary": {"broker": 1}}, "canary: nodes 1, 2, 3 with both roles are restarted with the controllers"),
        ({"canary": {"broker": 4}}, "before any canary, so that 3 of 4 brokers would have had their turn by then"),
        (
            {
                "brokers": [{"id": "1-3", "rack": "a", "controller": {"port": 9093}}],
                "roll": {"by": "rack", "at_once": 2},
            },
            "every broker is a controller too, and those are restarted one by one",
        ),
        (
            {"controller_properties": {"num.io.threads": 9}},
            "controller_properties.num.io.threads: broker_properties has another value",
        ),
        ({"brokers": [{"id": "1-3", "controller": {"port": 9092}}]}, "both use 127.10.0.1:9092"),
    ],
)
def test_what_does_not_go_with_both_roles_is_refused_with_its_reason(changes: dict[str, Any], words: str) -> None:
    assert words in problems(**changes)


def test_a_node_that_is_named_twice_is_told_where_it_belongs() -> None:
    again = {"id": 1, "host": "127.10.0.9", "port": 9093, "log_dir": "/d", "config_file": "/c", "service": "c"}
    text = problems(controllers=[{**again, "metrics_port": 7072}])
    assert "node 1 has both roles by its 'controller' among the brokers, and is named there alone" in text


# -- one file, one process ---------------------------------------------------------------------------------------------


def test_its_one_file_has_both_roles_and_both_listeners() -> None:
    found = kraft_properties(SPEC, 1)
    assert found["process.roles"] == "broker,controller"
    assert found["listeners"] == "PLAINTEXT://127.10.0.1:9092,CONTROLLER://127.10.0.1:9093"
    assert found["advertised.listeners"] == "PLAINTEXT://127.10.0.1:9092"
    assert found["metadata.log.dir"] == "/lab/node-1/metadata"
    assert found["controller.quorum.fetch.timeout.ms"] == "6000", "the controllers' own property"
    assert controller_properties(SPEC, SPEC.controller(1), ControllerMode.KRAFT) == found
    assert kraft_properties(SPEC, 4)["process.roles"] == "broker"


def test_kafka_advertises_no_controller_listener_by_itself() -> None:
    unsaid = {key: value for key, value in kraft_properties(SPEC, 1).items() if key != ADVERTISED}
    assert meaning(unsaid, newest_ibp="3.9")[ADVERTISED] == "PLAINTEXT://127.10.0.1:9092"


KAFKAS_OWN = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.voters": "1@localhost:9093",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "inter.broker.listener.name": "PLAINTEXT",
    "advertised.listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
    "log.dirs": "/tmp/kraft-combined-logs",
}
"""config/kraft/server.properties of Kafka 3.9.2, what it says of roles, listeners and places."""


def everywhere(bind_host: str | None = "") -> ClusterSpec:
    """One node on localhost, as Kafka's own file has it."""
    listener = {"name": "PLAINTEXT", "port": 9092, "bind_host": bind_host}
    one = {"id": 1, "host": "localhost", "listeners": [listener], "log_dirs": ["/tmp/kraft-combined-logs"]}
    return parsed(
        brokers=[{**one, "controller": {"port": 9093, "bind_host": bind_host}}],
        broker_properties={},
        controller_properties={},
        authorizer=False,
        super_users=[],
    )


def apart(on_disk: dict[str, str], spec: ClusterSpec) -> tuple[str, ...]:
    return differing_keys(*alike(on_disk, kraft_properties(spec, 1), newest_ibp="3.9"))


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"process.roles": "controller, broker"},
        {"listeners": "CONTROLLER://:9093,PLAINTEXT://:9092"},
        {"advertised.listeners": "PLAINTEXT://localhost:9092"},
        {"advertised.listeners": ""},
    ],
    ids=["as it is", "roles", "listeners", "as before 3.9", "none"],
)
def test_kafkas_own_file_can_be_declared(change: dict[str, str]) -> None:
    assert apart({**KAFKAS_OWN, **change}, everywhere()) == ()


def test_a_controller_listener_that_is_advertised_as_it_is_bound_says_nothing() -> None:
    bound = "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093"
    assert apart({**KAFKAS_OWN, "listeners": bound, "advertised.listeners": bound}, everywhere(None)) == ()


@pytest.mark.parametrize(
    "change",
    [
        {"process.roles": "broker"},
        {"listeners": "PLAINTEXT://:9092,CONTROLLER://:9094"},
        {"listeners": "PLAINTEXT://:9092,CONTROLLER://localhost:9093"},
        {"advertised.listeners": "PLAINTEXT://localhost:9092,CONTROLLER://other:9093"},
        {"advertised.listeners": "PLAINTEXT://other:9092,CONTROLLER://localhost:9093"},
    ],
)
def test_what_changes_its_meaning_is_a_difference(change: dict[str, str]) -> None:
    assert apart({**KAFKAS_OWN, **change}, everywhere())


def test_the_files_of_one_role_keep_the_order_of_their_listeners() -> None:
    assert (
        meaning({"process.roles": "broker", "listeners": "B://:2,A://:1"}, newest_ibp="3.9")["listeners"]
        == "B://:2,A://:1"
    )


def test_where_it_binds_is_named_for_the_cluster_file_in_whatever_order() -> None:
    seen = observation(Phase.KRAFT, SPEC)
    hosts = dict(seen.hosts)
    held = {**kraft_properties(SPEC, 1), "listeners": "CONTROLLER://:9093,PLAINTEXT://:9092"}
    hosts[1] = replace(hosts[1], config=held)
    first, *_ = broker_files(replace(seen, hosts=hosts), SPEC)
    assert first.bound == {"CONTROLLER": "", "PLAINTEXT": ""}
    assert "bind_host: '' at CONTROLLER" in render_bound(first.bound.items())
    assert "of a controller listener under brokers[].controller" in render_bound(first.bound.items())


def test_its_file_is_compared_once() -> None:
    seen = observation(Phase.KRAFT, SPEC)
    assert [each.node.id for each in broker_files(seen, SPEC)] == [1, 2, 3, 4]
    assert list(controller_files_in_kraft(seen, SPEC)) == []


def test_a_playbook_knows_it_by_one_name_and_looks_for_its_metadata_log_where_it_is() -> None:
    node = SPEC.broker(1)
    assert (node.named, host_name(node)) == ("node 1", "node-1")
    given = node_variables(SPEC, node)
    assert given["log_dirs"] == ["/lab/node-1/metadata", "/lab/node-1/data"]
    assert sorted(given["ports"]) == [7071, 9092, 9093]


@pytest.mark.parametrize(("role", "ended"), [("broker", "node 4"), ("broker,controller", "nodes 2, 3")])
def test_a_stop_by_role_ends_those_whose_files_name_exactly_that(role: str, ended: str) -> None:
    spec = SPEC.model_copy(update={"service_manager": ServiceManager(kind="systemd")})
    seen = on_host(1, stop_commands=(f"kafka-server-stop.sh --process-role={role}",))(observation(Phase.KRAFT, SPEC))
    assert f"stops {ended} of its host too" in HOST_CHECKS["KRB-PRE-132"].run(seen, spec).evidence


# -- restarts ----------------------------------------------------------------------------------------------------------


def led_by(node: int) -> ClusterObservation:
    seen = observation(Phase.KRAFT, SPEC)
    assert was_read(seen.quorum)
    controllers = {}
    for i, each in seen.controllers.items():
        assert was_read(each.metrics)
        metrics = replace(each.metrics, active=i == node)
        controllers[i] = replace(each, mode=ControllerMode.KRAFT, metrics=metrics)
    return replace(seen, quorum=replace(seen.quorum, leader_id=node), controllers=controllers)


SEEN = led_by(2)


def active(seen: ClusterObservation) -> int:
    assert was_read(seen.quorum)
    return seen.quorum.leader_id


def test_a_restart_asks_for_both_sets_takes_each_once_and_the_active_one_last() -> None:
    cluster, ports = RecordingCluster(SEEN, spec=SPEC), Evidence()
    run = run_on(cluster, ports, nodes="both")
    for node in SPEC.both_ids:
        take_step(run, BOTH_ROLES, node)
    last = active(SEEN)
    first = [each for each in SPEC.both_ids if each != last]
    assert cluster.did == [
        line
        for node in first
        for line in (
            "awaited every controller to run, to have caught up and to be warm",
            f"played restart_node on {node}",
        )
    ]
    cluster.did.clear()
    assert restart_active_controller(run) == {"restarted": [last]}
    waits = cluster.did[-4:]
    assert [each for each in cluster.did if each.startswith("played")] == [f"played restart_node on {last}"]
    assert waits[:3] == [
        f"awaited controller {last} to have caught up and to be warm",
        f"awaited broker {last} to register again",
        f"awaited broker {last} to be in every ISR",
    ]


def test_it_is_left_alone_while_a_replica_elsewhere_is_out_of_sync() -> None:
    assert was_read(SEEN.topics)
    short = replace(SEEN, topics=replace(SEEN.topics, out_of_sync_by_broker={4: 2}))
    cluster = RecordingCluster(short, spec=SPEC)
    node = next(each for each in SPEC.both_ids if each != active(SEEN))
    with pytest.raises(Refused, match=r"replicas on other brokers are out of sync \(broker 4: 2\)"):
        take_step(run_on(cluster, nodes="both"), BOTH_ROLES, node)
    assert not [each for each in cluster.did if each.startswith("played")]


def off(node: int) -> str:
    return f"put broker {node} last in the order of its partitions, and let others lead them"


def back(node: int) -> str:
    return f"give broker {node} the order of its partitions back, and its leaders"


def test_once_its_leaders_are_off_the_quorum_is_awaited_and_then_the_other_brokers_are_asked_again(
    tmp_path: Path,
) -> None:
    spec = SPEC.model_copy(update={"rolling_restart": SPEC.rolling_restart.model_copy(update={"demote": True})})
    lost = replace(SEEN, brokers={**SEEN.brokers, 4: replace(SEEN.brokers[4], running=False)})
    looks = [SEEN] * 5  # its step's, two waits for the quorum, and one after each but the last
    cluster = RecordingCluster(*looks, lost, spec=spec, answers={demote_broker: Demoted(3)})
    with pytest.raises(Refused, match="broker 4 does not answer"):
        take_step(run_on(cluster, nodes="both", state=tmp_path), BOTH_ROLES, 1)
    whole = "awaited every controller to run, to have caught up and to be warm"
    assert cluster.did == [whole, off(1), whole]


@pytest.mark.parametrize("asked", ["brokers", "controllers", "both"])
def test_a_run_for_either_role_means_it(asked: str) -> None:
    assert RESTARTS.left_out(Step.RESTART_BOTH_ROLES, {"nodes": asked}) is None


# -- the software roll -------------------------------------------------------------------------------------------------

TARGET = "4.1.1"
ROLLING = SPEC.model_copy(
    update={"kafka": SPEC.kafka.model_copy(update={"upgrade_to": Software(version=TARGET, home="/lab/kafka-4.1.1")})}
)


def running(on_new: tuple[int, ...], *, down: tuple[int, ...] = ()) -> ClusterObservation:
    def version(node: int) -> str:
        return TARGET if node in on_new else "3.9.2"

    brokers = {i: replace(each, software_version=version(i), running=i not in down) for i, each in SEEN.brokers.items()}
    controllers = {
        i: replace(each, software_version=version(i), running=i not in down) for i, each in SEEN.controllers.items()
    }
    seen = replace(SEEN, brokers=brokers, controllers=controllers)
    return both(*(registration(i, fenced=True) for i in down))(seen)


def test_a_node_with_both_roles_counts_once() -> None:
    reading = read_roll_of(running((1,)), "3.9.2", TARGET)
    assert reading.reasons == (f"1 of 4 nodes run {TARGET}, the others 3.9.2",)
    assert read_roll_of(running((1, 2, 3, 4)), "3.9.2", TARGET).stage is Rolled.NEW


def test_a_node_that_is_down_is_started_once_and_awaited_as_both() -> None:
    cluster = RecordingCluster(running((), down=(3,)), spec=ROLLING, answers={require_readable: None})
    assert start_what_is_down(run_on(cluster), back=False) == {"started": [3]}
    assert [each for each in cluster.did if each.startswith("played")] == ["played switch_software on 3"]
    assert "awaited broker 3 to be in every ISR" in cluster.did


def test_one_whose_brokers_port_alone_is_closed_comes_after_those_that_do_not_run() -> None:
    seen = running((), down=(3,))
    seen = ended(1, lives=True)(seen)
    up = replace(seen, brokers=running(()).brokers, controllers=running(()).controllers)
    up = replace(up, brokers={**up.brokers, 1: seen.brokers[1]})
    cluster = RecordingCluster(seen, seen, up, spec=ROLLING, answers={require_readable: None})
    assert start_what_is_down(run_on(cluster), back=False) == {"started": [3, 1]}


DEMOTING = ROLLING.model_copy(update={"upgrade_software": ROLLING.upgrade_software.model_copy(update={"demote": True})})


@pytest.mark.parametrize("of_run", ["one", "an earlier one"])
def test_a_try_that_was_killed_before_it_gave_leaders_back_gives_them_back(tmp_path: Path, of_run: str) -> None:
    answers = {
        give_orders_back: GivenBack(3),
        observe_features: all_registered(),
    }
    cluster = RecordingCluster(running((1, 2, 3)), spec=DEMOTING, answers=answers)
    run = run_on(cluster, state=tmp_path)
    keep_orders(kept_for(replace(run, name=of_run), 2), "id", of(t=[(1, 2)]), of(t=[(2, 1)]), {})
    roll_active_controller(run, back=False)
    assert back(2) in cluster.did
    assert cluster.did[cluster.did.index(back(2)) - 1] == "awaited broker 2 to be in every ISR"


def test_leaders_go_off_also_where_a_node_is_restarted_once_more(tmp_path: Path) -> None:
    registered = all_registered()
    lost = replace(in_log(registered, controllers={}), controllers={1: registered.controllers[101]})

    def levels(**_: Any) -> FeatureObservation:
        return registered if "played restart_node on 1" in cluster.did else lost

    answers = {require_readable: None, demote_broker: Demoted(3), observe_features: levels}
    cluster = RecordingCluster(running(()), spec=DEMOTING, answers=answers)
    run = run_on(cluster, Evidence(), state=tmp_path)
    take_step(run, BOTH_ROLES_UP, 1)
    assert register_anew(run, lambda _: BOTH_ROLES_UP, after=lambda _: None) == [1]
    assert [each for each in cluster.did if each == off(1) or each.startswith("played")] == [
        off(1),
        "played switch_software on 1",
        off(1),
        "played restart_node on 1",
    ]


def test_the_way_back_begins_with_them_where_every_broker_is_a_controller() -> None:
    spec = ROLLING.model_copy(update={"brokers": ROLLING.brokers[:3]})
    seen = running((1, 2, 3))
    seen = replace(seen, brokers={i: each for i, each in seen.brokers.items() if i != 4})
    node = next(each for each in spec.both_ids if each != active(seen))
    cluster = RecordingCluster(seen, spec=spec, answers={require_readable: None})
    take_step(run_on(cluster), BOTH_ROLES_BACK, node)
    assert f"played switch_software on {node}" in cluster.did
    done = take_step(run_on(cluster), BOTH_ROLES_UP, node)
    assert done["already_done"] == f"node {node} runs Kafka {TARGET}"


# -- levels ------------------------------------------------------------------------------------------------------------


def test_a_part_that_does_not_answer_is_not_hidden_by_the_other() -> None:
    seen, closed = all_registered(), Unread("it refuses connections")
    seen = replace(seen, controllers={1: seen.controllers[101]}, brokers={1: seen.brokers[1]})
    assert not isinstance(seen.nodes[1], Unread)
    assert replace(seen, brokers={1: closed}).nodes == {1: closed}
    assert replace(seen, controllers={1: closed}).nodes == {1: closed}


def test_after_a_raise_both_roles_must_show_the_level() -> None:
    def shown(_: ClusterSpec, node: Broker | Controller, **__: object) -> NodeFeatures:
        level = 20 if node == SPEC.controller(3) else 21
        return NodeFeatures(node.id, {}, {METADATA_VERSION: level}, 7, "4.1.1")

    with pytest.raises(StepFailed, match="by every node after 0 s: node 3 as controller shows 20"):
        await_level(
            SPEC,
            METADATA_VERSION,
            21,
            secrets=lambda _: "",
            tell=print,
            calls=Calls(shown=shown),
            pace=Pace(apart=0, seen_within=0.01),
        )


# -- refused by name ---------------------------------------------------------------------------------------------------


def test_care_of_the_quorum_refuses_a_node_with_both_roles() -> None:
    with pytest.raises(Refused, match=r"node \d has both roles in one process, and care of the quorum"):
        whom(CareForm(Care.LEADERSHIP, None), SEEN, SPEC)


def test_a_drill_refuses_it_and_may_stop_a_broker_alone() -> None:
    form = Form(Fault.FAILOVER, None, 1, 10.0, 5.0)
    with pytest.raises(Refused, match="has both roles in one process, and a drill"):
        aim(form, SEEN, SPEC)
    assert aim(replace(form, fault=Fault.SHUTDOWN), SEEN, SPEC).node == 4
    with pytest.raises(Refused, match="node 2 has both roles"):
        aim(replace(form, fault=Fault.SHUTDOWN, broker=2), SEEN, SPEC)


def test_unregistering_refuses_a_voter_that_the_cluster_file_no_longer_names() -> None:
    assert was_read(SEEN.quorum)
    fenced = {**SEEN.quorum.registrations, 3: replace(SEEN.quorum.registrations[3], fenced=True)}
    seen = replace(SEEN, quorum=replace(SEEN.quorum, registrations=fenced))
    seen = replace(seen, brokers={i: each for i, each in seen.brokers.items() if i != 3})
    spec = SPEC.model_copy(update={"brokers": tuple(each for each in SPEC.brokers if each.id != 3)})
    cluster = RecordingCluster(seen, spec=spec)
    with pytest.raises(Refused, match="node 3 is a voter of the quorum too"):
        unregister(run_on(cluster, broker=3))
    assert cluster.did == []


def test_unregistering_refuses_it_before_a_check() -> None:
    cluster = RecordingCluster(SEEN, spec=SPEC)
    with pytest.raises(Refused, match="node 2 has both roles in one process, and unregistering a broker"):
        prepare(run_on(cluster, broker=2))
    assert not cluster.looks
