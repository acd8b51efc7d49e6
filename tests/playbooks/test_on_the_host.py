"""What the modules share: hidden values, the node's lock, a process's start."""

from __future__ import annotations

import importlib.util
import os
import time
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraft_runbook.cluster.properties_text import parse_properties, render_properties
from kraft_runbook.cluster.sensitive import is_sensitive
from kraft_runbook.io.hosts.playbooks import playbook_directory


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, playbook_directory() / "module_utils" / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


host, text = load("kafka_host"), load("properties_text")

WORDS = [
    "password",
    "Secret",
    ".jaas.config",
    "private.key",
    "keystore.key",
    "token.master.key",
    "keystore.certificate.chain",
    "truststore.certificates",
    "credential",
    ".iterations",
    ".cipher.algorithm",
    ".key.length",
    "ssl",
    "x",
    ".",
    "key",
]


@given(st.lists(st.sampled_from(WORDS), max_size=4).map("".join))
def test_the_host_s_side_hides_the_keys_that_the_core_calls_sensitive(key: str) -> None:
    assert text.is_sensitive(key) == is_sensitive(key)


@given(
    st.dictionaries(
        st.from_regex(r"[a-z][a-z.]{0,12}", fullmatch=True),
        st.text(st.characters(codec="ascii", exclude_characters="\r\x0b\x0c\x1c\x1d\x1e"), max_size=20).map(str.strip),
    )
)
def test_the_host_s_side_reads_what_the_core_renders(properties: dict[str, str]) -> None:
    shown = {key: "<set>" if is_sensitive(key) else value for key, value in properties.items()}
    assert text.read(render_properties(properties, header="x")) == shown


def test_hidden_however_it_is_written() -> None:
    written = (
        "a = 1\nssl.key.password : open\nx.sasl.jaas.config=one \\\n "
        " two\n#old.password=open\nb.password=${secrets:/f:b.password}\nc.secret open\n"
    )
    shown = text.shown(written)
    assert "open" not in shown and "two" not in shown
    assert "a = 1\n" in shown and "${secrets:/f:b.password}" in shown
    assert text.shown_log("ERROR bad ssl.key.password=open here") == "ERROR bad ssl.key.password=<set>"
    assert text.shown_log("delegation.token.master.key=open") == "delegation.token.master.key=<set>"
    assert text.shown_log("password.encoder.secret = [hidden]") == "password.encoder.secret = [hidden]"
    assert parse_properties("a=1") == {"a": "1"}


def test_the_lock_is_one_run_s_and_says_who_has_it(tmp_path: Path) -> None:
    config = str(tmp_path / "server.properties")
    with (
        host.host_lock(config, 1.0),
        pytest.raises(host.HostError, match=rf"another run \(process {os.getpid()}\) has held"),
        host.host_lock(config, 0.2),
    ):
        pytest.fail("two runs held the lock")
    with host.host_lock(config, 0.2):
        pass


def test_a_process_start_is_known_to_a_clock_tick() -> None:
    before = time.time_ns()
    pid = os.fork()
    if pid == 0:
        time.sleep(30)
        os._exit(0)
    try:
        after = time.time_ns()
        assert before - 20_000_000 <= host.started_at_ns(pid) <= after
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
    assert host.started_at_ns(pid) is None


def test_a_file_written_after_a_start_is_newer_and_one_from_before_is_not(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    host.write_whole(str(path), b"a=1\n", 0o640, host.owner_of(str(path)))
    time.sleep(0.05)
    began = time.time_ns()
    assert host.changed_since(began, [str(path), str(tmp_path / "absent")]) == []
    time.sleep(0.02)
    host.write_whole(str(path), b"a=2\n", 0o640, host.owner_of(str(path)))
    assert host.changed_since(began, [str(path)]) == [str(path)]
    assert path.read_bytes() == b"a=2\n" and [each.name for each in tmp_path.iterdir()] == ["server.properties"]


def test_a_directory_that_can_not_be_looked_into_is_not_one_without_a_metadata_log(tmp_path: Path) -> None:
    assert not host.holds_metadata_log(str(tmp_path)) and not host.holds_metadata_log(str(tmp_path / "gone"))
    (tmp_path / "__cluster_metadata-0").mkdir()
    assert host.holds_metadata_log(str(tmp_path))
    (tmp_path / "__cluster_metadata-0" / host.BOOTSTRAP_CHECKPOINT).touch()
    assert not host.holds_metadata_log(str(tmp_path)), "what Kafka 4.4's format leaves"
    (tmp_path / "__cluster_metadata-0" / f"{0:020d}.log").touch()
    assert host.holds_metadata_log(str(tmp_path))
    (tmp_path / "round").symlink_to(tmp_path / "round")
    with pytest.raises(OSError, match="symbolic links"):
        host.holds_metadata_log(str(tmp_path / "round"))
