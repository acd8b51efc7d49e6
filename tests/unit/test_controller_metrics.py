"""Metrics are read whichever exporter rules a site uses, and what is no metrics page is refused."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from kraft_runbook.cluster.observation import Unread, ZkMigrationState
from kraft_runbook.cluster.old_requests import OldRequests
from kraft_runbook.cluster.spec_parts import MetricsSource
from kraft_runbook.cluster.spec_types import SecretRef
from kraft_runbook.errors import Unreachable
from kraft_runbook.io.jolokia_answer import DEPRECATED_MBEAN, parse_jolokia, partitions_of_jolokia
from kraft_runbook.io.metrics import MetricsClient
from kraft_runbook.io.node_metrics import broker_metrics, controller_metrics
from kraft_runbook.io.prometheus_page import parse_prometheus
from kraft_runbook.io.secrets import environment_secrets

PAGES = {
    "lower case": (
        "kafka_controller_kafkacontroller_zkmigrationstate 2.0\nkafka_controller_kafkacontroller_activecontrollercount"
        " 1.0\nkafka_controller_kafkacontroller_migratingzkbrokercount 3.0\n"
    ),
    "as Kafka spells it": (
        "kafka_controller_KafkaController_ZkMigrationState 2.0\nkafka_controller_KafkaController_ActiveControllerCount"
        " 1.0\nkafka_controller_KafkaController_MigratingZkBrokerCount 3.0\n"
    ),
    "value behind": (
        "kafka_controller_kafkacontroller_zkmigrationstate_value"
        " 2.0\nkafka_controller_kafkacontroller_activecontrollercount_value"
        " 1.0\nkafka_controller_kafkacontroller_migratingzkbrokercount_value 3.0\n"
    ),
    "name as a label": (
        'kafka_controller_KafkaController_Value{name="ZkMigrationState",}'
        ' 2.0\nkafka_controller_KafkaController_Value{name="ActiveControllerCount",}'
        ' 1.0\nkafka_controller_KafkaController_Value{name="MigratingZkBrokerCount",} 3.0\n'
    ),
    "with types and help": (
        "# HELP kafka_controller_kafkacontroller_zkmigrationstate x\n# TYPE"
        " kafka_controller_kafkacontroller_zkmigrationstate gauge\nkafka_controller_kafkacontroller_zkmigrationstate"
        " 2.0\nkafka_controller_kafkacontroller_activecontrollercount"
        " 1.0\nkafka_controller_kafkacontroller_migratingzkbrokercount 3.0\n"
    ),
}


@pytest.mark.parametrize("rules", PAGES)
def test_gauges_are_found_under_every_usual_name(rules: str) -> None:
    found = controller_metrics(parse_prometheus(PAGES[rules]))
    assert (found.zk_migration_state, found.active, found.migrating_zk_broker_count, found.zk_write_behind_lag) == (
        ZkMigrationState.PRE_MIGRATION,
        True,
        3,
        None,
    )


ACTIVE = "kafka_controller_kafkacontroller_activecontrollercount 1\n"
WRITES = {
    "the lab's rules": 'kafka_controller_kafkacontroller_zkwritedeltatimems{quantile="0.99",} 41.0\n',
    "no rules": (
        'kafka_controller_KafkaController_50thPercentile{name="ZkWriteDeltaTimeMs",} 3.0\n'
        'kafka_controller_KafkaController_99thPercentile{name="ZkWriteDeltaTimeMs",} 41.0\n'
        'kafka_controller_KafkaController_99thPercentile{name="ZkWriteSnapshotTimeMs",} 900.0\n'
    ),
    "with quantiles": (
        'kafka_controller_kafkacontroller_zkwritedeltatimems{quantile="0.50",} 3.0\n'
        'kafka_controller_kafkacontroller_zkwritedeltatimems{quantile="0.99",} 41.0\n'
        'kafka_controller_kafkacontroller_zkwritedeltatimems{quantile="0.999",} 70.0\n'
    ),
}


@pytest.mark.parametrize("rules", WRITES)
def test_the_time_of_a_write_to_zookeeper_is_found_under_every_usual_name(rules: str) -> None:
    assert controller_metrics(parse_prometheus(ACTIVE + WRITES[rules])).zk_write_delta_p99_ms == 41.0
    assert controller_metrics(parse_prometheus(ACTIVE)).zk_write_delta_p99_ms is None


def test_jolokia_gives_the_same_time_of_a_write() -> None:
    values = {
        "kafka.controller:name=ActiveControllerCount,type=KafkaController": {"Value": 1},
        "kafka.controller:name=ZkWriteDeltaTimeMs,type=KafkaController": {"50thPercentile": 3, "99thPercentile": 41},
        "kafka.controller:name=ZkWriteSnapshotTimeMs,type=KafkaController": {"99thPercentile": 900},
    }
    found = controller_metrics(parse_jolokia([{"status": 200, "value": values}]))
    assert (found.active, found.zk_write_delta_p99_ms) == (True, 41.0)


def test_a_gauge_that_is_nan_is_not_there() -> None:
    page = parse_prometheus("kafka_server_replicamanager_underreplicatedpartitions NaN\n")
    with pytest.raises(Unreachable, match="UnderReplicatedPartitions"):
        broker_metrics(page)


def test_the_version_is_found_in_either_form() -> None:
    assert parse_prometheus('kafka_server_app_version{id="1",version="3.9.2"} 1.0\n').software_version == "3.9.2"
    assert parse_prometheus('kafka_server_app_info{version="3.9.1",} 1.0\n').software_version == "3.9.1"


@pytest.mark.parametrize(("value", "problem"), [("7", "ZkMigrationState is 7, which Kafka 3.9 does not know")])
def test_an_unknown_state_is_not_guessed(value: str, problem: str) -> None:
    with pytest.raises(Unreachable, match=problem):
        controller_metrics(
            parse_prometheus(
                "kafka_controller_kafkacontroller_activecontrollercount"
                f" 1\nkafka_controller_kafkacontroller_zkmigrationstate {value}\n"
            )
        )


# -- over HTTP ---------------------------------------------------------------------------------------------------------


class Server(HTTPServer):
    answer: tuple[int, str] = (200, "")
    requests: list[tuple[str, str, str | None]]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self._reply("")

    def do_POST(self) -> None:
        self._reply(self.rfile.read(int(self.headers["Content-Length"])).decode())

    def _reply(self, body: str) -> None:
        self.server.requests.append((self.path, body, self.headers.get("Authorization")))
        status, text = self.server.answer
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def server() -> Iterator[Server]:
    listening = Server(("127.0.0.1", 0), Handler)
    listening.requests = []
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield listening
    listening.shutdown()
    thread.join()
    listening.server_close()


def read(server: Server, settings: MetricsSource, **secrets: str) -> object:
    with MetricsClient(settings, secrets=environment_secrets(secrets), timeout=2.0) as metrics:
        return metrics.read("127.0.0.1", server.server_port)


def test_the_exporter_is_read_with_its_password(server: Server) -> None:
    server.answer = (200, PAGES["lower case"])
    settings = MetricsSource(username="me", password=SecretRef(env="METRICS_PASSWORD"))
    assert read(server, settings, METRICS_PASSWORD="hunter2").gauges["kafkacontroller.zkmigrationstate"] == 2.0  # type: ignore[attr-defined]
    path, _, authorization = server.requests[0]
    assert path == "/metrics"
    assert authorization is not None and authorization.startswith("Basic ")


@pytest.mark.parametrize(("counted", "requests"), [(0, 1), (4, 2)])
def test_jolokia_gives_the_same_gauges_in_one_request_and_names_the_partitions_in_another(
    server: Server, counted: int, requests: int
) -> None:
    parts = [
        {
            "status": 200,
            "value": {
                "kafka.controller:name=ZkMigrationState,type=KafkaController": {"Value": 1},
                "kafka.controller:name=ActiveControllerCount,type=KafkaController": {"Value": 0},
            },
        },
        {
            "status": 200,
            "value": {
                "kafka.server:name=UnderReplicatedPartitions,type=ReplicaManager": {"Value": counted},
                "kafka.server:name=IsrShrinksPerSec,type=ReplicaManager": {"Count": 0},
            },
        },
        {"status": 404, "error_type": "javax.management.InstanceNotFoundException", "error": "not there"},
        {"status": 200, "value": {"kafka.server:id=101,type=app-info": {"Version": "3.9.2", "CommitId": "x"}}},
    ]
    server.answer = (200, json.dumps(parts))
    found = read(server, MetricsSource(kind="jolokia"))
    assert controller_metrics(found).zk_migration_state is ZkMigrationState.MIGRATION  # type: ignore[arg-type]
    assert broker_metrics(found).under_replicated_partitions == counted  # type: ignore[arg-type]
    assert found.software_version == "3.9.2"  # type: ignore[attr-defined]
    assert [path for path, _, _ in server.requests] == ["/jolokia/"] * requests


@pytest.mark.parametrize(
    ("kind", "answer", "problem"),
    [
        ("prometheus", (500, "oops"), "answered HTTP 500"),
        ("prometheus", (200, "<html>not metrics</html>"), "answers with something else than metrics"),
        ("jolokia", (200, "<html>"), "answers with something else than metrics"),
        ("jolokia", (200, '{"status": 403}'), "answers with something else than metrics"),
        ("jolokia", (200, '[{"status": 200, "value": 7}]'), "answers with something else than metrics"),
    ],
)
def test_what_is_no_metrics_is_named(server: Server, kind: str, answer: tuple[int, str], problem: str) -> None:
    server.answer = answer
    with pytest.raises(Unreachable, match=problem) as error:
        read(server, MetricsSource(kind=kind))  # type: ignore[arg-type]
    assert f"http://127.0.0.1:{server.server_port}/" in error.value.problem
    assert "metrics_port" in error.value.way_out


def test_an_endpoint_that_is_not_there_is_named() -> None:
    with (
        MetricsClient(MetricsSource(), secrets=environment_secrets({}), timeout=1.0) as metrics,
        pytest.raises(Unreachable, match=r"http://127\.14\.214\.1:1/metrics could not be read: ConnectError"),
    ):
        metrics.read("127.14.214.1", 1)


NAMED = {
    "as Kafka spells it": (
        'kafka_cluster_Partition_UnderReplicated{partition="3",topic="a.b"} 1.0\n'
        'kafka_cluster_Partition_UnderReplicated{partition="4",topic="a.b"} 0.0\n'
    ),
    "value behind": 'kafka_cluster_partition_underreplicated_value{partition="3",topic="a.b"} 1.0\n',
    "name as a label": (
        'kafka_cluster_Partition_Value{name="UnderReplicated",topic="a.b",partition="3",} 1.0\n'
        'kafka_cluster_Partition_Value{name="UnderMinIsr",topic="a.b",partition="5",} 1.0\n'
    ),
}


@pytest.mark.parametrize("rules", NAMED)
def test_partitions_are_named_where_the_exporter_shows_their_gauges(rules: str) -> None:
    page = parse_prometheus(f"kafka_server_replicamanager_underreplicatedpartitions 1\n{NAMED[rules]}")
    assert broker_metrics(page).under_replicated == ("a.b-3",)


def test_jolokia_names_the_partitions_of_a_broker_that_counts_any() -> None:
    mbeans = {
        f"kafka.cluster:name=UnderReplicated,partition={number},topic=a.b,type=Partition": {"Value": value}
        for number, value in ((3, 1), (4, 0))
    }
    assert partitions_of_jolokia([{"status": 200, "value": mbeans}, {"status": 404}]) == ("a.b-3",)


UNDER = "kafka_server_replicamanager_underreplicatedpartitions 0.0\n"
ERRORS = {
    "our rules": (
        "kafka_server_broker_metadata_metrics_metadata_load_error_count 1.0\n"
        "kafka_server_broker_metadata_metrics_metadata_apply_error_count 2.0\n"
    ),
    "the exporter's own": (
        "kafka_server_broker_metadata_metrics_metadata_load_error_count 0.0\n"
        "kafka_server_broker_metadata_metrics_metadata_apply_error_count 3.0\n"
        "kafka_server_broker_metadata_metrics_last_applied_record_offset 990.0\n"
    ),
}


@pytest.mark.parametrize("page", ERRORS.values(), ids=ERRORS)
def test_a_broker_counts_what_it_could_not_read_and_apply(page: str) -> None:
    assert broker_metrics(parse_prometheus(UNDER + page)).metadata_errors == 3
    assert broker_metrics(parse_prometheus(UNDER)).metadata_errors is None


def test_jolokia_shows_the_same() -> None:
    mbeans = {
        "kafka.server:name=UnderReplicatedPartitions,type=ReplicaManager": {"Value": 0},
        "kafka.server:type=broker-metadata-metrics": {
            "metadata-load-error-count": 1.0,
            "metadata-apply-error-count": 2,
        },
    }
    assert broker_metrics(parse_jolokia([{"status": 200, "value": mbeans}])).metadata_errors == 3


OLD_REQUESTS = {
    "counted as a total": (
        'kafka_network_requestmetrics_deprecatedrequests_total{request="Fetch",version="2",'
        'clientsoftwarename="unknown",clientsoftwareversion="unknown",} 3.0\n'
    ),
    "Kafka's name and Count behind": (
        'kafka_network_requestmetrics_deprecatedrequestspersec_count{request="Fetch",version="2",'
        'clientsoftwarename="unknown",clientsoftwareversion="unknown",} 3.0\n'
        'kafka_network_requestmetrics_deprecatedrequestspersec_count{request="FetchConsumer",version="2",'
        'clientsoftwarename="unknown",clientsoftwareversion="unknown",} 3.0\n'
        'kafka_network_requestmetrics_deprecatedrequestspersec_oneminuterate{request="Fetch",version="2",} 0.5\n'
    ),
    "name as a label": (
        'kafka_network_RequestMetrics_Count{name="DeprecatedRequestsPerSec",request="Fetch",version="2",'
        'clientSoftwareName="unknown",clientSoftwareVersion="unknown",} 3.0\n'
        'kafka_network_RequestMetrics_Count{name="RequestsPerSec",request="Fetch",version="17",} 99.0\n'
        'kafka_network_RequestMetrics_MeanRate{name="DeprecatedRequestsPerSec",request="Fetch",version="2",} 0.5\n'
    ),
    "the exporter's example rules, which have room for two labels": (
        "kafka_network_requestmetrics_deprecatedrequests_total{"
        'request_Fetch__version_2__clientSoftwareName="unknown",clientSoftwareVersion="unknown",} 3.0\n'
        "kafka_network_requestmetrics_deprecatedrequests_total{"
        'request_FetchConsumer__version_2__clientSoftwareName="unknown",clientSoftwareVersion="unknown",} 3.0\n'
        'kafka_network_requestmetrics_requests_total{request="Fetch",version="2",} 3.0\n'
    ),
}
IN_SYNC = "kafka_server_replicamanager_underreplicatedpartitions 0.0\n"


@pytest.mark.parametrize("rules", OLD_REQUESTS)
def test_requests_in_deprecated_versions_are_counted_by_kind_and_client(rules: str) -> None:
    found = broker_metrics(parse_prometheus(IN_SYNC + OLD_REQUESTS[rules])).deprecated_requests
    assert found == (OldRequests("unknown", "unknown", "Fetch", "2", 3),)


def test_no_such_request_and_no_metric_of_requests_are_not_the_same() -> None:
    none = parse_prometheus(
        IN_SYNC + 'kafka_network_requestmetrics_requestspersec_count{request="ApiVersions",version="4"} 4\n'
    )
    assert broker_metrics(none).deprecated_requests == ()
    times = 'kafka_network_requestmetrics_totaltimems_count{request="Fetch"} 4\n'  # name=*,request=* passes these alone
    for page in (IN_SYNC, IN_SYNC + times):
        unread = broker_metrics(parse_prometheus(page)).deprecated_requests
        assert isinstance(unread, Unread) and "let its rules pass both" in unread.reason


def test_an_exporter_that_passes_all_requests_and_not_the_deprecated_ones_tells_them_too() -> None:
    page = "".join(
        f'kafka_network_requestmetrics_requests_total{{request="{api}",version="{version}"}} {count}.0\n'
        for api, version, count in (
            ("Fetch", 3, 7),
            ("FetchConsumer", 3, 7),
            ("Fetch", 4, 9),
            ("Produce", 2, 0),
            ("CreateTopics", 1, 2),
            ("LeaderAndIsr", 0, 5),
        )
    )
    assert broker_metrics(parse_prometheus(IN_SYNC + page)).deprecated_requests == (
        OldRequests("unknown", "", "CreateTopics", "1", 2),
        OldRequests("unknown", "", "Fetch", "3", 7),
    )


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (
            {
                "status": 200,
                "value": {
                    "kafka.network:clientSoftwareName=old,clientSoftwareVersion=1.0,name=DeprecatedRequestsPerSec,"
                    "request=Produce,type=RequestMetrics,version=1": {"Count": 7, "MeanRate": 0.1}
                },
            },
            (OldRequests("old", "1.0", "Produce", "1", 7),),
        ),
        ({"status": 404}, ()),
    ],
)
def test_jolokia_shows_them_too(part: dict[str, object], expected: tuple[OldRequests, ...]) -> None:
    answer = [
        {"status": 200, "value": {"kafka.server:name=UnderReplicatedPartitions,type=ReplicaManager": {"Value": 0}}},
        {"request": {"mbean": DEPRECATED_MBEAN}, **part},
    ]
    assert broker_metrics(parse_jolokia(answer)).deprecated_requests == expected


def test_jolokia_that_refuses_to_show_them_leaves_them_unread() -> None:
    answer = [
        {"status": 200, "value": {"kafka.server:name=UnderReplicatedPartitions,type=ReplicaManager": {"Value": 0}}},
        {"request": {"mbean": DEPRECATED_MBEAN}, "status": 403},
    ]
    assert isinstance(broker_metrics(parse_jolokia(answer)).deprecated_requests, Unread)
