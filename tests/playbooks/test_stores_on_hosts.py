"""Real stores, made and opened by the host's own keytool: what is told of each, and that no password is."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from observations import SPEC

from kraft_runbook.cluster.observation import Unread, was_read
from kraft_runbook.cluster.spec_types import SecretRef
from kraft_runbook.io.hosts import ansible_reports
from kraft_runbook.io.hosts.ansible_reports import HIDDEN
from kraft_runbook.io.hosts.ansible_runs import run_ansible
from kraft_runbook.io.hosts.host_facts import gather_secured_hosts
from kraft_runbook.io.secrets import environment_secrets

RIGHT, WRONG = "right-of-the-store", "wrong-of-the-store"
OWN = "listener.name.controller.ssl"


def keytool(*words: str) -> None:
    subprocess.run(["keytool", *words, "-storepass", RIGHT], check=True, capture_output=True)


@pytest.fixture
def stores(tmp_path: Path) -> Path:
    made = ["-keyalg", "EC", "-validity", "30", "-ext", "SAN=dns:c101,ip:127.0.0.1", "-dname", "CN=c101, O=Example"]
    keytool("-genkeypair", "-keystore", str(tmp_path / "keys.p12"), "-storetype", "PKCS12", *made)
    keytool("-exportcert", "-keystore", str(tmp_path / "keys.p12"), "-file", str(tmp_path / "cert"), "-rfc")
    keytool("-importcert", "-noprompt", "-keystore", str(tmp_path / "trust.jks"), "-file", str(tmp_path / "cert"))
    (tmp_path / "own.properties").write_text(f"key={RIGHT}\n")
    (tmp_path / "broken.p12").write_text("no store")
    return tmp_path


def test_each_store_is_opened_with_its_password_and_none_is_told(stores: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = f"${{secrets:{stores}/own.properties:key}}"
    properties = {
        "ssl.keystore.location": f"{stores}/keys.p12",
        "ssl.keystore.type": "PKCS12",
        "ssl.truststore.location": f"{stores}/trust.jks",
        "ssl.truststore.password": own,
        f"{OWN}.keystore.location": f"{stores}/missing.p12",
        "listener.name.a.ssl.keystore.location": f"{stores}/broken.p12",
        "zookeeper.ssl.truststore.location": f"{stores}/cert",
        "listener.name.b.ssl.truststore.location": f"{stores}/keys.p12.copy",
        "listener.name.b.ssl.truststore.password": own.replace(":key", ":nokey"),
    }
    (stores / "keys.p12.copy").write_bytes((stores / "keys.p12").read_bytes())
    spec = SPEC.model_copy(
        update={
            "brokers": SPEC.brokers[:1],
            "controllers": SPEC.controllers[:1],
            "secrets": {"ssl.keystore.password": SecretRef(env="KRB_STORE_WORD")},
            "controller_properties": {**SPEC.controller_properties, **properties},
            "broker_properties": {"ssl.keystore.location": f"{stores}/keys.p12", "ssl.keystore.type": "PKCS12"},
        }
    )
    events: list[str] = []
    add = ansible_reports.Fold.add

    def seen(self: object, event: dict[str, object]) -> None:
        events.append(repr(event))
        add(self, event)

    monkeypatch.setattr(ansible_reports.Fold, "add", seen)

    def look(word: str) -> dict[str, tuple[str | None, str | None]]:
        found = gather_secured_hosts(spec, secrets=environment_secrets({"KRB_STORE_WORD": word}))[1].stores
        assert was_read(found[101])
        certificate = found[101][0].certificate
        if word == RIGHT:
            assert certificate and certificate.subject == "CN=c101,O=Example"
            assert certificate.names == ("c101", "127.0.0.1") and certificate.ends > certificate.begins
            (trusting,) = (each for each in found[101] if each.key == "ssl.truststore.location")
            assert found[101][0].anchors == trusting.anchors != ()
        assert [each.wrong for each in found[1]] == [None if word == RIGHT else "its password does not open it"]
        return {each.key: (each.wrong, each.unread) for each in found[101]}

    told = look(RIGHT)
    assert told["ssl.keystore.location"] == told["ssl.truststore.location"] == (None, None)
    assert told[f"{OWN}.keystore.location"] == ("it is not there", None)
    assert told["listener.name.a.ssl.keystore.location"][0] == "it is no store of type PKCS12, or is damaged"
    assert "has no nokey" in str(told["listener.name.b.ssl.truststore.location"][0])
    assert look(WRONG)["ssl.keystore.location"] == ("its password does not open it", None)
    assert not [each for each in events if RIGHT in each or WRONG in each]


def test_what_the_stores_make_of_it_leaves_the_facts_of_the_host(stores: Path) -> None:
    """Both are read in one run. The module that opens the stores breaks off."""
    one = {"brokers": SPEC.brokers[:1], "controllers": SPEC.controllers[:1]}
    spec = SPEC.model_copy(update=one | {"broker_properties": {"ssl.keystore.location": f"{stores}/keys.p12"}})
    runs: list[str] = []

    def run(playbook: Path, *given: Any, **named: Any) -> Any:
        runs.append(playbook.stem)
        return run_ansible(playbook, *given, **{**named, "secret_text": "no JSON"})

    hosts, secured = gather_secured_hosts(spec, secrets=environment_secrets({}), plays=run)
    assert was_read(hosts[1].free_bytes) and was_read(hosts[101].free_bytes)
    assert secured.stores[1] == Unread("the host could not be asked for its stores")
    assert runs == ["gather_host_facts"]


def test_a_host_that_is_lost_while_its_stores_are_opened_has_told_its_facts(stores: Path, tmp_path: Path) -> None:
    """``failed_when`` does not cover a host that can't be reached: nothing listens where the second task goes."""
    one = {"brokers": SPEC.brokers[:1], "controllers": SPEC.controllers[:1]}
    spec = SPEC.model_copy(update=one | {"broker_properties": {"ssl.keystore.location": f"{stores}/keys.p12"}})
    here = tmp_path / "playbooks"
    here.mkdir()

    def run(playbook: Path, *given: Any, **named: Any) -> Any:
        for each in playbook.parent.iterdir():
            if each.name != playbook.name:
                (here / each.name).symlink_to(each)
        plays = yaml.safe_load(playbook.read_text())
        lost = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1}
        plays[0]["tasks"][1]["vars"] = lost
        (here / playbook.name).write_text(yaml.safe_dump(plays, sort_keys=False))
        return run_ansible(here / playbook.name, *given, **named)

    hosts, secured = gather_secured_hosts(spec, secrets=environment_secrets({}), plays=run)
    assert was_read(hosts[1].free_bytes) and was_read(hosts[101].free_bytes)
    assert secured.stores[1] == Unread(f"while its stores were opened: the host can't be reached: {HIDDEN}")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_what_the_user_that_runs_kafka_cannot_read_is_told_though_root_can(stores: Path) -> None:
    """The owner of the log directory counts as that user, where nothing else says who it is."""
    with tempfile.TemporaryDirectory(prefix="krb-stores-") as given:
        here = Path(given)
        here.chmod(0o755)
        (here / "data").mkdir()
        os.chown(here / "data", 4711, 4711)
        closed = {name: here / name for name in ("keys.p12", "own.properties")}
        for name, path in closed.items():
            path.write_bytes((stores / name).read_bytes())
            path.chmod(0o600)
        properties = {
            "ssl.keystore.location": str(closed["keys.p12"]),
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.password": f"${{secrets:{closed['own.properties']}:key}}",
            "ssl.key.password": f"${{secrets:{here}/none:key}}",
        }
        broker = SPEC.brokers[0].model_copy(update={"properties": properties, "log_dirs": (f"{here}/data",)})
        spec = SPEC.model_copy(update={"brokers": (broker,), "controllers": SPEC.controllers[:1]})

        def look() -> tuple[str | None, dict[str, str | Unread]]:
            found = gather_secured_hosts(spec, secrets=environment_secrets({"KRB_LAB_TOKEN_SECRET": "x"}))[1]
            assert was_read(found.stores[1])
            return found.stores[1][0].wrong, dict(found.secrets[1].files)

        wrong, files = look()
        told = {
            name: f"user 4711, who runs Kafka, can't read {path} (owner root, mode 0600)"
            for name, path in closed.items()
        }
        assert wrong == told["keys.p12"]
        assert files == {
            str(closed["own.properties"]): told["own.properties"],
            f"{here}/none": f"{here}/none is not there",
        }
        for path in closed.values():
            os.chown(path, 4711, 4711)
        wrong, files = look()
        assert files[str(closed["own.properties"])] == "" and "its password: No such file" in str(wrong)


def test_secrets_are_compared_on_the_host_and_none_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a broker's file: one password stands there as it is to be, one is another, one is in a file of its own, one
    comes from a provider that is not asked. A controller's login is in a file of the host.
    """
    plain, own = "listener.name.controller.plain.sasl.jaas.config", tmp_path / "own.properties"
    line = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="kafka" password="{RIGHT}"'
    own.write_text(f"word={RIGHT}\nlogin={line} user_kafka={RIGHT} user_tool={WRONG};\n")
    scram = "listener.name.internal.scram-sha-512.sasl.jaas.config"
    config = tmp_path / "server.properties"
    config.write_text(
        "config.providers=files,vault\n"
        "config.providers.files.class=org.apache.kafka.common.config.provider.FileConfigProvider\n"
        "config.providers.vault.class=com.example.Vault\n"
        f"ssl.truststore.password={WRONG}\nssl.key.password = ${{files:{own}:word}}\n"
        "password.encoder.secret=${vault:kafka:word}\nssl.keystore.password=${files:" + f"{own}:none}}\n"
        f"{scram}=org.apache.kafka.common.security.scram.ScramLoginModule  required password='{RIGHT}' username=a;\n"
    )
    names = ("ssl.truststore.password", "ssl.key.password", "password.encoder.secret", "ssl.keystore.password")
    login = f'org.apache.kafka.common.security.scram.ScramLoginModule required username="a" password="{RIGHT}";'
    spec = SPEC.model_copy(
        update={
            "brokers": (SPEC.brokers[0].model_copy(update={"config_file": str(config)}),),
            "controllers": SPEC.controllers[:1],
            "secrets": {**{each: SecretRef(env="WORD") for each in names}, scram: SecretRef(env="LOGIN")},
            "controller_properties": {**SPEC.controller_properties, plain: f"${{secrets:{own}:login}}"},
        }
    )
    events: list[str] = []
    add = ansible_reports.Fold.add

    def seen(self: object, event: dict[str, object]) -> None:
        events.append(repr(event))
        add(self, event)

    monkeypatch.setattr(ansible_reports.Fold, "add", seen)
    found = gather_secured_hosts(spec, secrets=environment_secrets({"WORD": RIGHT, "LOGIN": login}))[1]
    told = dict(found.secrets[1].as_on_host)
    vault, lacking = told.pop("password.encoder.secret"), told.pop("ssl.keystore.password")
    assert told == {"ssl.truststore.password": False, "ssl.key.password": True, scram: True}
    assert not was_read(vault) and "vault (com.example.Vault) is not asked from here" in vault.reason
    assert not was_read(lacking) and "has no none" in lacking.reason
    of_controller = found.secrets[101].logins[plain]
    assert was_read(of_controller) and of_controller.user == "kafka"
    assert of_controller.users["kafka"] == of_controller.password != of_controller.users["tool"]
    assert found.secrets[101].as_on_host == {}
    assert not [each for each in events if RIGHT in each or WRONG in each]
