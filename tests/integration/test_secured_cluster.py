"""A cluster with TLS and logins everywhere: its checks, its way into dual write, its parity, and its way back.

The tests build on each other, in this order.
"""

from __future__ import annotations

from pathlib import Path

import by_hand
import pytest
from adopting import adopt, completed
from kazoo.security import Permissions
from labs import Lab
from pyspark.sql import SparkSession
from rights_asked import OF_BROKERS, READING, Grants, Limited, lines, names, remove_what_everybody_may, said

from kraft_runbook.cluster.node_properties import broker_properties
from kraft_runbook.cluster.observation import BrokerMode, was_read
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.cluster.spec_types import SecretRef
from kraft_runbook.errors import Unreachable
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.io.zookeeper.session import ZookeeperSession
from kraft_runbook.migration.checks import CHECKS
from kraft_runbook.migration.leaving import fence_plan
from kraft_runbook.parity.comparison import Verdict
from kraft_runbook.parity.dual_write import read_migration
from kraft_runbook.parity.spark.full_comparison import run_parity
from kraft_runbook.procedures.leave_kraft import leave_kraft
from kraft_runbook.procedures.observe import Scope, observe
from kraft_runbook.runbook.check_results import Verdict as Judged
from kraft_runbook.runbook.rights import acls
from lab.health import wait_until_healthy
from lab.layout import layout
from lab.logins import CONTROLLER_LOGIN
from lab.secret_files import read_environment_file
from lab.secured import OF_KEYSTORES
from lab.secured.certificates import Authority


def test_every_check_of_the_start_passes(secured: Lab) -> None:
    """On a busy machine a host may not answer in time, which is UNKNOWN: then it is looked again, as a person does.
    supervisor does not say the login of controllers that do not run: of that a person is warned.
    """
    for _ in range(3):
        seen = observe(secured.spec, secrets=secured.secrets, scope=Scope.FULL, with_hosts=True)
        results = CHECKS.run(seen, secured.spec, Phase.ZOOKEEPER, gate="start", earlier=seen).results
        left = [f"{r.code} {r.verdict}: {r.evidence}" for r in results if r.verdict is not Judged.PASS]
        if [r.code for r in results if r.verdict is Judged.UNKNOWN] == ["KRB-PRE-130"]:
            break
    assert left == [
        "KRB-PRE-130 UNKNOWN: supervisor does not say the login of controllers 101, 102, 103: see its program's"
        " environment"
    ]
    assert detect_phase(seen).phase is Phase.ZOOKEEPER


def test_the_cluster_that_is_adopted_as_it_runs_passes_every_check_too(secured: Lab, tmp_path: Path) -> None:
    adopt(secured, tmp_path)
    text = (tmp_path / "adopted.yaml").read_text()
    assert not [ref for ref in secured.spec.secrets.values() if secured.secrets(ref) in text]
    adopted, secrets = completed(secured, tmp_path)
    for _ in range(3):
        seen = observe(adopted.spec, secrets=secrets, scope=Scope.FULL, with_hosts=True)
        results = CHECKS.run(seen, adopted.spec, Phase.ZOOKEEPER, gate="start", earlier=seen).results
        left = {r.code: f"{r.verdict}: {r.evidence}" for r in results if r.verdict is not Judged.PASS}
        if left.keys() == {"KRB-PRE-130"}:
            break
    assert left.keys() == {"KRB-PRE-130"}, left


def test_a_store_that_could_not_serve_is_named_before_anything_is_stopped(secured: Lab) -> None:
    """Of one controller it is missing, of one it is for another host, and one is opened by another password. This tool
    trusts another authority of the same name.
    """
    here, spec = secured.directory, secured.spec
    Authority(here / "other").keystore(here / "other" / "keys.p12", "other", "another password")
    stores = (here / "none.p12", here / "broker-1" / "keys.p12", here / "other" / "keys.p12")
    changed = tuple(
        each.model_copy(update={"properties": {**each.properties, "ssl.keystore.location": str(store)}})
        for each, store in zip(spec.controllers, stores, strict=True)
    )
    strange = str(here / "other" / "authority.pem")
    tool = spec.controller_security.model_copy(update={"ca_file": strange})
    spec = spec.model_copy(update={"controllers": changed, "controller_security": tool})
    seen = observe(spec, secrets=secured.secrets, scope=Scope.FULL, with_hosts=True)
    opened, names = CHECKS["KRB-PRE-104"].run(seen, spec), CHECKS["KRB-PRE-105"].run(seen, spec)
    assert (opened.verdict, names.verdict) == (Judged.FAIL, Judged.FAIL)
    assert all(f"controller {i}" in opened.evidence for i in (101, 103)) and "controller 102" not in opened.evidence
    trust = CHECKS["KRB-PRE-116"].run(seen, spec)
    assert trust.verdict is Judged.FAIL and f"this tool ({strange})" in trust.evidence, trust
    assert (
        f"its certificate is for {spec.broker(1).host}, broker-1, not for {spec.controller(102).host}" in names.evidence
    ), names.evidence


def test_logins_and_secrets_that_would_not_do_are_named_before_anything_is_changed(secured: Lab) -> None:
    """The nodes' user is no super user; the key stores' password is another; the controllers do not know this tool."""
    spec = secured.spec.model_copy(update={"super_users": ("User:tool",)})

    def other(ref: SecretRef) -> str:
        if ref.env == CONTROLLER_LOGIN:
            return secured.secrets(ref).replace("user_tool", "user_other")
        return "another password" if ref.env == OF_KEYSTORES else secured.secrets(ref)

    seen = observe(spec, secrets=other, scope=Scope.FULL, with_hosts=True)
    supers, held, known = (CHECKS[f"KRB-PRE-{n}"].run(seen, spec) for n in (106, 127, 128))
    assert {each.verdict for each in (supers, held, known)} == {Judged.FAIL}
    for who in ("controller 101 calls brokers", "broker 1 calls controllers"):
        assert f"{who} as User:kafka, which is no super user" in supers.evidence
    hosts = ", ".join(each.host for each in spec.brokers)
    assert f"ssl.keystore.password of brokers 1, 2, 3 ({hosts}) has another value in its file" in held.evidence
    assert "password.encoder.secret" not in held.evidence
    assert "this tool logs in as tool, and there is no user_tool at the controllers" in known.evidence
    told = str([each.evidence for each in (supers, held, known)]) + str(seen)
    secret = read_environment_file(layout(spec).secrets_environment).values()
    assert not [each for each in ("another password", *secret) if each in told]


def test_on_the_brokers_the_rights_that_read_are_enough_and_each_is_missed_by_name(secured: Lab) -> None:
    """The short form of ``test_rights_on_a_cluster``, which asks everything."""
    remove_what_everybody_may(secured)
    tool, grants, asked = Limited(secured), Grants(secured), set[object]()
    for name, acl in lines({each: OF_BROKERS[each] for each in READING}):
        if (OF_BROKERS[name], acl) in asked:
            continue
        asked.add((OF_BROKERS[name], acl))
        grants.only(acls(changes=False))
        assert said(OF_BROKERS[name], tool) == ""
        grants.without(acl)
        assert names(acl, text := said(OF_BROKERS[name], tool)), text
    grants.only([])


def test_this_tools_own_login_must_be_right(secured: Lab) -> None:
    def guessed(ref: object) -> str:
        return "guessed" if "ZOOKEEPER" in str(ref) else secured.secrets(ref)  # type: ignore[arg-type]

    reader = ZookeeperReader(secured.spec.ensemble, secrets=guessed, timeout=5)
    with pytest.raises(Unreachable, match="login as kafka was refused") as raised, reader:
        pass
    assert "guessed" not in str(raised.value)


def test_it_gets_into_dual_write_and_holds_the_same_on_both_sides(secured: Lab, spark: SparkSession) -> None:
    spec = secured.spec
    by_hand.to_dual_write(spec, secrets=secured.secrets)
    by_hand.roll_brokers(spec, BrokerMode.KRAFT, secrets=secured.secrets, only=(1,))
    report = run_parity(spec, secrets=secured.secrets, spark=spark)
    assert report.verdict is Verdict.MATCH, report.render_text()
    by_hand.roll_brokers(spec, BrokerMode.HYBRID, secrets=secured.secrets, only=(1,))
    by_hand.await_dual_write(spec, secrets=secured.secrets)


def test_no_znode_that_a_controller_made_is_open_to_everyone(secured: Lab) -> None:
    """Controllers without zookeeper.set.acl would leave /controller, new topics and users to the world."""
    session = ZookeeperSession(secured.spec.ensemble, secrets=secured.secrets)
    session.connect()
    try:
        for path in ("/controller", "/migration", "/brokers/topics/orders"):
            acls, _ = session.client.get_acls(path)
            assert {each.id.scheme for each in acls if each.perms & ~Permissions.READ} == {"sasl", "x509"}, path
    finally:
        session.close()


def test_it_goes_back(secured: Lab) -> None:
    spec = secured.spec
    with ZookeeperReader(spec.ensemble, secrets=secured.secrets) as reader:
        since = read_migration(reader).kraft_metadata_offset
    plan = fence_plan(observe(spec, secrets=secured.secrets))
    left = leave_kraft(spec, plan, proven_since=since, secrets=secured.secrets, tell=print)
    assert set(left.deleted) >= {"/controller", "/migration"}
    assert left.controller in spec.broker_ids
    for broker in spec.brokers:
        by_hand.write(broker, broker_properties(spec, broker, BrokerMode.ZOOKEEPER))
        by_hand.restart(broker, spec)
        wait_until_healthy(spec, say=print)
    seen = observe(spec, secrets=secured.secrets).zookeeper
    assert was_read(seen) and seen.migration is None and set(seen.brokers) == set(spec.broker_ids)
