"""Secrets: in the host's secrets file (0600) and nowhere else, neither during a run nor after it."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from pathlib import Path

import pytest
from played import restart_broker
from stand_in_node import SECRET, Node

from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.cluster.properties_text import render_secrets
from kraft_runbook.errors import SecretMissing, StepFailed
from kraft_runbook.io.secrets import environment_secrets

pytestmark = pytest.mark.usefixtures("a_provisioned_controller")

ESCAPED = SECRET.replace("\\", "\\\\")


class Watch:
    """Looks, all the time, through the run's directory and through what any process shows in its command line."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.found: set[str] = set()
        self.read: set[str] = set()

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.03):
            # a directory may go while it is listed: rglob would end the thread there
            files = (Path(where, name) for where, _, names in os.walk(self._directory) for name in names)
            for path in [*files, *Path("/proc").glob("[0-9]*/cmdline")]:
                try:
                    content = path.read_bytes()
                except OSError:
                    continue
                self.read.add(path.name)
                if any(
                    each.encode() in content
                    for each in (SECRET, ESCAPED, ESCAPED.replace("\\", "\\\\"), "planted-in-the-environment")
                ):
                    self.found.add(str(path))


def test_a_planted_secret_is_in_the_secrets_file_alone(
    node: Node, temporary_files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_TOKEN", "planted-in-the-environment")
    lines: list[str] = []
    with Watch(temporary_files) as watch:
        result = restart_broker(node.spec, 1, BrokerMode.HYBRID, secrets=environment_secrets(), on_event=lines.append)
    assert {"hosts.yml", "command", "cmdline"} <= watch.read
    assert watch.found == set()
    assert list(temporary_files.iterdir()) == []
    told = "\n".join([*lines, repr(result)])
    assert SECRET not in told and ESCAPED not in told
    holding = [
        path for path in node.directory.rglob("*") if path.is_file() and ESCAPED in path.read_text(errors="replace")
    ]
    assert holding == [Path(node.spec.secrets_file or "")]
    assert holding[0].read_text() == render_secrets({"password.encoder.secret": SECRET})
    assert holding[0].stat().st_mode & 0o777 == 0o600


def test_a_step_names_the_keys_whose_values_it_changes_and_shows_none(node: Node) -> None:
    file, lines = Path(node.spec.secrets_file or ""), list[str]()
    file.write_text("password.encoder.secret=by-hand\n")
    restart_broker(node.spec, 1, BrokerMode.HYBRID, secrets=environment_secrets(), on_event=lines.append, check=True)
    assert f"broker 1: would write {file}, with other values of: password.encoder.secret" in lines
    assert "by-hand" not in "".join(lines) and SECRET not in "".join(lines)


def test_a_secrets_file_that_cannot_be_written_is_explained_without_the_secret(node: Node) -> None:
    (node.directory / "a-file").touch()
    spec = node.spec.model_copy(update={"secrets_file": f"{node.directory}/a-file/secrets.properties"})
    with pytest.raises(StepFailed, match=r"a-file/secrets.properties could not be written \(Not a directory") as failed:
        restart_broker(spec, 1, BrokerMode.HYBRID, secrets=environment_secrets())
    assert "planted" not in str(failed.value)
    assert node.starts() == []


def test_a_missing_secret_is_named_before_anything_is_touched(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KRB_PLANTED_SECRET")
    before = node.files()
    with pytest.raises(SecretMissing, match="KRB_PLANTED_SECRET is not set"):
        restart_broker(node.spec, 1, BrokerMode.HYBRID, secrets=environment_secrets())
    assert node.files() == before


def test_secrets_that_someone_wrote_into_the_file_by_hand_are_not_shown_and_the_file_is_kept(node: Node) -> None:
    config = Path(node.spec.broker(1).config_file)
    config.parent.mkdir()
    config.write_text(
        'broker.id=1\nssl.key.password=by-hand\nlistener.name.x.scram.sasl.jaas.config=a b \\\n   password="by-hand";\n'
    )
    config.chmod(0o600)
    result = restart_broker(node.spec, 1, BrokerMode.HYBRID, secrets=environment_secrets())
    assert "by-hand" not in repr(result)
    assert "-ssl.key.password=<set>" in result.diffs[0].render()
    assert "by-hand" in Path(f"{config}.before-kraft-runbook").read_text()
    assert config.stat().st_mode & 0o777 == Path(f"{config}.before-kraft-runbook").stat().st_mode & 0o777 == 0o600


def test_what_a_killed_run_left_is_removed_by_the_next(node: Node, temporary_files: Path) -> None:
    left = temporary_files / "kraft-runbook-run-left"
    left.mkdir()
    (left / ".alive").touch()
    for name, age in (("made-again", 7200), ("being-made", 0)):
        (temporary_files / f"kraft-runbook-run-{name}").mkdir()
        os.utime(temporary_files / f"kraft-runbook-run-{name}", (time.time() - age,) * 2)
    held = temporary_files / "kraft-runbook-run-held"
    held.mkdir()
    with (held / ".alive").open("w") as alive:
        fcntl.flock(alive, fcntl.LOCK_EX)
        restart_broker(node.spec, 1, BrokerMode.HYBRID, secrets=environment_secrets(), check=True)
    assert sorted(path.name for path in temporary_files.iterdir()) == [
        "kraft-runbook-run-being-made",
        "kraft-runbook-run-held",
    ]
