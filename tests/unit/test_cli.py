"""Exit codes, messages and JSON of the command line, and how each bad input is met. Nothing here changes anything."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import jsonschema
import pytest
from moves_seen import moves_seen
from observations import (
    CLUSTERS,
    WHY,
    Spoil,
    a_controller,
    both,
    broker,
    gauges,
    observation,
    on_host,
    part,
    with_quorum,
    zookeeper,
)

from kraft_runbook.cli import app
from kraft_runbook.cli.asking import Asking
from kraft_runbook.cli.outputs import OUTPUTS, schema
from kraft_runbook.cluster.observation import ClusterObservation, MigrationZnode, Unread, ZkMigrationState
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.errors import RunbookError
from kraft_runbook.parity.parity_report import Verdict
from kraft_runbook.procedures.observe import Sources, observe
from kraft_runbook.procedures.settled import observe_settled
from kraft_runbook.reassignment.look import ReassignmentSeen

DOCS = Path(__file__).resolve().parents[2] / "docs"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def _the_lab_is_where_its_file_says(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KRB_LAB_DIR", "KRB_LAB_NET"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command line; gives its exit code, output and errors. ``seen`` stands in for the real cluster; ``ask``:
    how it is asked otherwise.
    """

    def call(
        *arguments: str,
        seen: ClusterObservation | None = None,
        directory: Path = CLUSTERS,
        claim: str = "",
        ask: Asking | None = None,
        **own: Any,
    ) -> tuple[int, str, str]:
        monkeypatch.setenv("KRAFT_RUNBOOK_CLUSTERS", str(directory))
        if seen is not None:
            ask = Asking(
                observe=lambda *_, **__: seen,
                settled=lambda *_, **__: seen,
                claim=lambda spec, **__: claim if spec.zookeeper else "",
                groups=lambda *_, **__: ("orders: ALL_OLD",),
                liveness=0,
                apart=0,
                **own,
            )
        with pytest.raises(SystemExit) as ended:
            app.main(arguments, ask)
        captured = capsys.readouterr()
        assert "Traceback" not in captured.out + captured.err
        return int(ended.value.code or 0), captured.out, captured.err

    return call


# -- bad input ---------------------------------------------------------------------------------------------------------


def test_an_unknown_cluster(run: Run) -> None:
    code, out, err = run("observe", "--cluster", "nope")
    assert (code, out) == (3, "")
    assert err.startswith(f"error: no cluster named 'nope' in {CLUSTERS} (known: lab)\n  What to do: write ")


def test_a_malformed_cluster_file_with_all_its_problems(run: Run, tmp_path: Path) -> None:
    text = (
        (CLUSTERS / "lab.yaml")
        .read_text()
        .replace("version: 3.9.2", "version: 3.6.0")
        .replace("- id: 102", "- id: 2")
        .replace("  - id: 3\n", "  - id: 1\n")
    )
    (tmp_path / "lab.yaml").write_text(text)
    code, out, err = run("preflight", "--cluster", "lab", directory=tmp_path)
    assert (code, out) == (3, "")
    assert "lab.yaml has 3 problems:" in err
    assert (
        "brokers: id 1 is used 2 times" in err
        and "2 is also a broker's id" in err
        and "3.6.0 is too old; upgrade the brokers to 3.9.2 first" in err
    )
    assert "docs/cluster-file.md" in err


def test_without_a_command_help_is_shown_and_h_asks_for_it_too(run: Run) -> None:
    for arguments in ((), ("-h",), ("--help",)):
        code, out, err = run(*arguments)
        assert (code, err) == (0, "") and "preflight" in out and "--install-completion" in out
    code, out, _ = run("schema", "-h")
    assert code == 0 and all(name in "".join(out.split()) for name in OUTPUTS)


def test_clusters_are_listed_and_a_file_that_can_not_be_used_says_why(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("clusters")
    assert code == 0 and out.startswith("lab  One ZooKeeper")
    (tmp_path / "bad.yaml").write_text("name: bad\n")
    code, out, _ = run("clusters", directory=tmp_path)
    assert code == 1 and out.startswith("bad  can not be used: ")
    (tmp_path / "bad.yaml").unlink()
    code, out, err = run("clusters", directory=tmp_path)
    assert code == 3 and f"no cluster file (*.yaml) in {tmp_path}" in err


@pytest.mark.parametrize(
    "arguments",
    [
        ("frob",),
        ("observe",),
        ("observe", "--cluster", "lab", "--frob"),
        ("preflight", "--cluster", "lab", "--gate", "x"),
        ("schema", "x"),
    ],
)
def test_wrong_usage(run: Run, arguments: tuple[str, ...]) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (4, "")
    assert err.startswith("usage error: ")


def test_a_cluster_that_is_not_there_names_zookeeper_and_every_broker(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real sockets: everything refuses. The hosts are not asked."""
    monkeypatch.setenv("KRB_LAB_NET", "127.14.213")
    look = partial(observe, sources=Sources(hosts=lambda *_, **__: ({}, Unread("not asked")), seconds=0.1))
    ask = Asking(observe=look, settled=partial(observe_settled, look=look, sleep=lambda _: None))
    code, out, _ = run("preflight", "--cluster", "lab", ask=ask)
    assert code == 1
    assert "ZooKeeper at 127.14.213.1:2181 could not be read: no answer in 0.1 s" in out
    for i in (1, 2, 3):
        assert f"broker {i} does not run (127.14.213.1{i}:9092 refuses connections)" in out
    code, out, _ = run("explain", "--cluster", "lab", ask=ask)
    assert code == 2
    assert "lab is in UNKNOWN." in out
    code, _, err = run("plan", "--cluster", "lab", ask=ask)
    assert code == 3
    assert (
        "there is no plan for lab: its phase is unknown (ZooKeeper could not be read: ZooKeeper at 127.14.213.1:2181"
        in err
    )


Z, P, D = Phase.ZOOKEEPER, Phase.PRE_MIGRATION, Phase.DUAL_WRITE
BAD: dict[str, tuple[Phase, Spoil, int, str]] = {
    "unreachable ZooKeeper": (
        Z,
        part(zookeeper=Unread("ZooKeeper at zk:2181 could not be read: no answer")),
        2,
        "ZooKeeper at zk:2181 could not be read: no answer",
    ),
    "unreachable broker": (
        Z,
        broker(2, running=Unread("b2:9092 did not answer in 2 s"), mode=WHY),
        2,
        "broker 2: b2:9092 did not answer in 2 s",
    ),
    "unreachable controller": (
        P,
        a_controller(102, running=Unread("c2:9093 did not answer in 2 s"), mode=WHY, metrics=WHY),
        2,
        "controller 102: c2:9093 did not answer in 2 s",
    ),
    "unreachable metrics": (
        P,
        a_controller(102, metrics=Unread("the metrics at http://c2:7071/metrics could not be read")),
        2,
        "controller 102: the metrics at http://c2:7071/metrics could not be read",
    ),
    "no Java": (
        Z,
        on_host(101, java_version=Unread("no java on the PATH of controller-101")),
        2,
        "node 101: no java on the PATH of controller-101",
    ),
    "too old a Java": (
        Z,
        on_host(101, java_version="1.8.0_402"),
        1,
        "node 101 has Java 1.8.0_402; 11 or later is needed",
    ),
    "a busy port": (
        Z,
        on_host(103, ports_in_use=frozenset({9093})),
        1,
        "port 9093 on 127.10.0.103, declared for controller 103, is in use by another process",
    ),
    "Kafka older than 3.9": (Z, broker(1, software_version="3.6.2"), 1, "broker 1 runs Kafka 3.6.2"),
    "wrong cluster id": (Z, broker(1, advertised_cluster_id="another"), 1, "broker 1 says another, ZooKeeper"),
    "already finalized": (Phase.FINALIZED, part(), 1, "the migration is already final"),
    "born in KRaft": (
        D,
        both(
            *(gauges(i, zk_migration_state=ZkMigrationState.NONE) for i in (101, 102, 103)),
            with_quorum(migration_state_record=ZkMigrationState.NONE),
        ),
        1,
        "the cluster was created in KRaft mode: ZkMigrationState is 0 in the metadata log",
    ),
    "a stale /migration": (
        Z,
        zookeeper(migration=MigrationZnode(207, 101, 1, 1)),
        1,
        "/migration says that controller 101 wrote up to offset 207",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_preflight_meets(run: Run, name: str) -> None:
    phase, spoil, expected, evidence = BAD[name]
    code, out, _ = run("preflight", "--cluster", "lab", seen=spoil(observation(phase)))
    assert code == expected
    line = next(n for n, text in enumerate(out.splitlines()) if evidence in text)
    assert any("What to do: " in text for text in out.splitlines()[line : line + 2])


# -- what is fine ------------------------------------------------------------------------------------------------------


def test_preflight_of_a_healthy_cluster_passes(run: Run) -> None:
    code, out, _ = run("preflight", "--cluster", "lab", "--gate", "start", seen=observation(Z))
    assert code == 0
    assert out.splitlines()[-1].endswith("0 failed, 0 unknown: PASS")


def test_preflight_asks_what_the_gate_asks_besides_its_checks(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether dual write goes on, and what the rehearsal and the cluster that comes first have on record."""
    monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(tmp_path))
    monkeypatch.delenv("KRAFT_RUNBOOK_EVIDENCE", raising=False)
    of_dual_write = ("preflight", "--cluster", "lab", "--gate", "dual_write", "--json")
    _, out, _ = run(*of_dual_write, seen=observation(Phase.DUAL_WRITE))
    assert "KRB-DW-001" in {each["code"] for each in json.loads(out)["results"]}
    asks = "\nafter: {cluster: small}\nrehearsal:\n  required_within: 7d\n"
    (tmp_path / "lab.yaml").write_text((CLUSTERS / "lab.yaml").read_text().replace("\nrehearsal:\n", asks))
    of = ("preflight", "--cluster", "lab", "--gate", "start", "--json")
    found = run(*of, seen=observation(Z), directory=tmp_path)
    told = {each["code"]: each for each in json.loads(found[1])["results"]}
    assert found[0] == 1 and told["KRB-PRE-110"]["evidence"] == "no rehearsal is on record"
    assert "no run of small is on record here" in told["KRB-PRE-111"]["evidence"]


def test_explain_names_the_run_that_has_a_claim_on_the_cluster(run: Run) -> None:
    claim = "run one of zk_to_kraft_migration__lab has a claim on it"
    assert f"  Runs: {claim}.\n" in run("explain", "--cluster", "lab", seen=observation(Z), claim=claim)[1]
    assert "Runs:" not in run("explain", "--cluster", "lab", seen=observation(Z))[1]
    gone = run("explain", "--cluster", "lab", seen=part(zookeeper=WHY)(observation(Z)), claim=claim)
    assert claim not in gone[1], "where ZooKeeper can't be read, it is not asked again"


def test_explain_names_the_groups_until_zookeeper_is_behind(run: Run) -> None:
    title = "\nConsumer groups in ZooKeeper:\n  - orders: ALL_OLD\n"
    assert title in run("explain", "--cluster", "lab", seen=observation(Z))[1]
    for seen in (observation(Phase.FINALIZED), part(zookeeper=WHY)(observation(Z))):
        assert "Consumer groups" not in run("explain", "--cluster", "lab", seen=seen)[1]


def test_another_operation_is_explained_and_checked_by_its_own_table_and_checks(run: Run) -> None:
    of = ("--cluster", "lab", "--operation", "rolling_restart")
    code, out, _ = run("explain", *of, seen=observation(Phase.DUAL_WRITE))
    assert code == 0 and "restart_brokers: restart each broker" in out and "Can it be undone: yes" in out
    down = broker(2, running=False)(observation(Phase.DUAL_WRITE))
    assert "broker 2" in run("explain", *of, seen=down)[1].partition("It waits for")[2]
    _, out, _ = run("preflight", *of, "--json", seen=observation(Phase.DUAL_WRITE))
    codes = {each["code"] for each in json.loads(out)["results"]}
    assert {"KRB-ROLL-001", "KRB-ROLL-002", "KRB-PRE-004"} <= codes and "KRB-PRE-010" not in codes
    code, _, err = run("explain", "--cluster", "lab", "--operation", "nope")
    assert code == 4 and "--operation is migration or rolling_restart" in err and "not nope" in err


def test_a_reassignment_is_explained_and_checked_by_a_look_of_its_own(run: Run) -> None:
    of = ("--cluster", "lab", "--operation", "reassignment")
    seen = moves_seen()
    own: Any = {"own_looks": {ReassignmentSeen: lambda spec, secrets, tell: seen}}
    code, out, _ = run("explain", *of, seen=seen.cluster, claim="run one has a claim on it", **own)
    assert code == 0 and "lab is in ZOOKEEPER." in out and "nothing is being reassigned" in out
    assert "Runs: run one has a claim on it." in out
    code, out, _ = run("preflight", *of, seen=seen.cluster, **own)
    assert code == 0 and "8 passed, 0 failed, 0 unknown: PASS" in out
    assert run("preflight", *of, "--gate", "cancel", seen=seen.cluster, **own)[0] == 0
    seen = moves_seen(legacy="{}")
    code, out, _ = run("preflight", *of, "--json", seen=seen.cluster, **own)
    assert code == 1 and [c["code"] for c in json.loads(out)["results"] if c["verdict"] == "FAIL"] == ["KRB-MOV-004"]


@pytest.mark.parametrize("command", ["observe", "preflight", "plan", "explain"])
@pytest.mark.parametrize("phase", [p for p in Phase if p is not Phase.UNKNOWN])
def test_json_fits_its_documented_schema(run: Run, command: str, phase: Phase) -> None:
    _, out, _ = run(command, "--cluster", "lab", "--json", seen=observation(phase))
    jsonschema.validate(json.loads(out), json.loads((DOCS / "schemas" / f"{command}.json").read_text()))


def test_json_of_what_was_not_read_is_an_object_with_its_reason(run: Run) -> None:
    code, out, _ = run("observe", "--cluster", "lab", "--json", seen=part(zookeeper=WHY)(observation(Z)))
    assert code == 2
    found = json.loads(out)
    assert found["observation"]["zookeeper"] == {
        "reason": "a test did not read it",
        "out_of_time": False,
        "timed_out": False,
        "way_out": "",
    }
    assert found["phase"]["phase"] == "UNKNOWN"
    jsonschema.validate(found, json.loads((DOCS / "schemas" / "observe.json").read_text()))


@pytest.mark.parametrize("command", OUTPUTS)
def test_the_schemas_in_the_docs_are_current(run: Run, command: str) -> None:
    """Run `kraft-runbook schema COMMAND > docs/schemas/COMMAND.json`."""
    text = (DOCS / "schemas" / f"{command}.json").read_text()
    assert text == schema(command)
    assert run("schema", command)[1] == text
    jsonschema.Draft202012Validator.check_schema(json.loads(text))


def test_checks_are_listed(run: Run) -> None:
    assert run("checks", "--markdown")[1] == (DOCS / "checks.md").read_text()
    jsonschema.validate(
        json.loads(run("checks", "--json")[1]), json.loads((DOCS / "schemas" / "checks.json").read_text())
    )
    assert "KRB-PRE-014  BLOCKING  Every partition has its state znode" in run("checks")[1]


@pytest.mark.parametrize(("verdict", "code"), [(Verdict.MATCH, 0), (Verdict.MISMATCH, 1), (Verdict.INCONCLUSIVE, 2)])
def test_parity_exits_by_its_verdict(run: Run, monkeypatch: pytest.MonkeyPatch, verdict: Verdict, code: int) -> None:
    report = SimpleNamespace(verdict=verdict, render_text=lambda: f"it is a {verdict}")
    module = ModuleType("kraft_runbook.parity.spark.full_comparison")
    module.run_parity = lambda *_, **__: report  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "kraft_runbook.parity.spark.full_comparison", module)
    assert run("parity", "--cluster", "lab") == (code, f"it is a {verdict}\n", "")


def test_what_parity_proves_is_saved_under_the_former_name_of_the_option_too(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}

    def run_parity(*_: object, **options: Any) -> object:
        asked.update(options)
        return SimpleNamespace(verdict=Verdict.MATCH, render_text=lambda: "")

    module = ModuleType("kraft_runbook.parity.spark.full_comparison")
    module.run_parity = run_parity  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "kraft_runbook.parity.spark.full_comparison", module)
    run("parity", "--cluster", "lab", "--save-proven", "one", "--save-proven", "other", "--baseline", "before")
    assert asked["save_proven"] == [Path("one"), Path("other")]
    assert asked["baseline"] == Path("before")


def test_an_error_in_parity_is_no_verdict(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise RunbookError("no Spark", way_out="install it")

    module = ModuleType("kraft_runbook.parity.spark.full_comparison")
    module.run_parity = fails  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "kraft_runbook.parity.spark.full_comparison", module)
    assert run("parity", "--cluster", "lab") == (3, "", "error: no Spark\n  What to do: install it\n")


def test_help_is_not_an_error(run: Run) -> None:
    assert run("--help")[0] == 0
