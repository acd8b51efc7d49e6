"""How the modules write files as root: whole, for the user that runs Kafka, never through another user's link, and
without losing what the way back needs.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kraft_runbook.cluster.mode_settings import ZOOKEEPER_KEYS
from kraft_runbook.cluster.properties_text import parse_properties, render_secrets

KAFKA, STRANGER, NOBODY = 4711, 4712, 0xFFFFFFFF
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A directory that every user may enter, which pytest's own is not."""
    with tempfile.TemporaryDirectory(prefix="krb-files-") as directory:
        os.chmod(directory, 0o755)
        yield Path(directory)


class Service:
    """A service that does not run, of which the unit says whose it is, or of which nothing says it. ``options``: its
    KAFKA_OPTS; None: its manager does not tell it.
    """

    def __init__(self, user: tuple[str, str] | None, options: str | None = "") -> None:
        self._user, self._options = user, options

    def environment(self) -> dict[str, str] | None:
        return None if self._options is None else {"KAFKA_OPTS": self._options}

    def status(self) -> SimpleNamespace:
        return SimpleNamespace(pid=0, state="stopped")

    def user(self) -> tuple[str, str] | None:
        return self._user


@pytest.fixture
def not_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: STRANGER)


@pytest.fixture
def write(on_the_host: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Write a file as kafka_file does, for a service of Kafka's user."""

    def apply(
        path: Path,
        content: str,
        *,
        user: tuple[str, str] | None = (str(KAFKA), str(KAFKA)),
        check: bool = False,
        **changes: Any,
    ) -> dict[str, Any]:
        monkeypatch.setattr(on_the_host.kafka_file, "service_manager", lambda *_: Service(user))
        monkeypatch.setattr(on_the_host.kafka_user, "ids_of", lambda user, group: (int(user), int(group)))
        asked = {
            "path": str(path),
            "content": content,
            "private": False,
            "header": "# ours",
            "unread": [],
            "besides": {},
            "log_dir": str(tmp_path),
        }
        asked |= {"name": "x", "manager": "systemd", "socket": None}
        found: dict[str, Any] = on_the_host.kafka_file.apply({**asked, **changes}, check=check)
        return found

    return apply


@needs_root
def test_a_new_file_is_kafkas_though_its_directory_is_roots(write: Any, tmp_path: Path) -> None:
    for name, private, mode in (("controller.properties", False, 0o640), ("secrets.properties", True, 0o600)):
        write(tmp_path / name, "a=1\n", private=private)
        found = (tmp_path / name).stat()
        assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (KAFKA, KAFKA, mode)


@needs_root
def test_a_secrets_file_that_root_alone_can_read_is_given_to_kafka_without_a_restart(
    write: Any, on_the_host: SimpleNamespace, tmp_path: Path
) -> None:
    file = tmp_path / "secrets.properties"
    file.write_text("a=1\n")
    file.chmod(0o600)
    os.utime(file, ns=(10**18, 10**18))
    assert "can't read" in on_the_host.kafka_user.unreadable(str(file), KAFKA, KAFKA)
    assert write(file, "a=1\n", private=True)["changed"]
    assert on_the_host.kafka_user.unreadable(str(file), KAFKA, KAFKA) == ""
    assert file.stat().st_mtime_ns == 10**18
    assert not write(file, "a=1\n", private=True)["changed"]


@pytest.mark.parametrize("encoding", ["latin-1", "utf-8"])
def test_what_somebody_wrote_in_another_encoding_is_shown_as_text_that_ansible_takes(
    write: Any, tmp_path: Path, encoding: str
) -> None:
    file = tmp_path / "server.properties"
    file.write_bytes("# für uns\nbroker.id=1\n".encode(encoding))
    for check in (True, False):
        found = write(file, "broker.id=2\n", check=check)
        assert found["diff"]["before"].encode().decode().startswith("# für uns\nbroker.id=1\n")
    assert Path(f"{file}.before-kraft-runbook").read_bytes() == "# für uns\nbroker.id=1\n".encode(encoding)


@needs_root
def test_a_directory_that_kafka_may_not_enter_is_named(on_the_host: SimpleNamespace, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(0o700)
    (closed / "secrets").write_text("")
    assert f"can't enter {closed} " in on_the_host.kafka_user.unreadable(str(closed / "secrets"), KAFKA, KAFKA)


@needs_root
def test_a_login_file_that_kafka_cannot_read_is_told_and_one_that_is_not_there(
    on_the_host: SimpleNamespace, tmp_path: Path
) -> None:
    file = tmp_path / "jaas.conf"
    options = f"-Djava.security.auth.login.config={file}"

    def told(given: str = options) -> str | None:
        os.chown(tmp_path, KAFKA, KAFKA)
        found: str | None = on_the_host.kafka_host_facts.login_readable(
            Service(None, given), 0, str(tmp_path), str(tmp_path / "server.properties")
        )
        return found

    assert (told(""), told()) == (None, f"{file} is not there")
    file.write_text("")
    file.chmod(0o600)
    assert told() == f"user {KAFKA}, who runs Kafka, can't read {file} (owner root, mode 0600)"
    os.chown(file, KAFKA, KAFKA)
    assert told() == ""


def test_past_zookeeper_a_login_file_that_only_the_running_jvm_names_may_be_gone(
    on_the_host: SimpleNamespace, tmp_path: Path
) -> None:
    """The restart takes the option out, and may not wait for the file."""
    file, config = tmp_path / "gone.conf", tmp_path / "server.properties"
    option = f"-Djava.security.auth.login.config={file}"
    waits = [sys.executable, "-c", "import sys; sys.stdin.read()", option, "kafka.Kafka"]
    running = subprocess.Popen(waits, stdin=subprocess.PIPE)

    def told(service: Service, properties: str) -> str | None:
        config.write_text(properties)
        found: str | None = on_the_host.kafka_host_facts.login_readable(
            service, running.pid, str(tmp_path), str(config)
        )
        return found

    try:
        assert told(Service(None), "node.id=1\n") is None
        for service, properties in (
            (Service(None), "node.id=1\nzookeeper.connect=z:2181\n"),
            (Service(None, option), "node.id=1\n"),
            (Service(None, None), "node.id=1\n"),
        ):
            assert told(service, properties) == f"{file} is not there"
    finally:
        running.kill()
        running.communicate()


def acl(**rights: int) -> bytes:
    """A POSIX ACL as Linux keeps it, with Kafka's user among its entries."""
    kinds = {"owner": 1, "kafka": 2, "group": 4, "mask": 16, "other": 32}
    whose = {"kafka": KAFKA}
    entries = [struct.pack("<HHI", kind, rights[name], whose.get(name, NOBODY)) for name, kind in kinds.items()]
    return struct.pack("<I", 2) + b"".join(entries)


ACL = "system.posix_acl_access"
READS = {"owner": 6, "kafka": 4, "group": 0, "mask": 4, "other": 0}


@needs_root
def test_a_file_that_kafka_reads_by_its_acl_keeps_it(write: Any, on_the_host: SimpleNamespace, tmp_path: Path) -> None:
    file, unreadable = tmp_path / "server.properties", on_the_host.kafka_user.unreadable
    file.write_text("# ours\n")
    os.setxattr(file, ACL, acl(**READS))
    assert write(file, "# ours\na=1\n")["changed"]
    assert (os.getxattr(file, ACL), file.stat().st_mode & 0o777) == (acl(**READS), 0o640)
    assert unreadable(str(file), KAFKA, KAFKA) == ""
    os.setxattr(file, ACL, acl(**READS | {"mask": 0}))
    assert f"can't read {file} " in unreadable(str(file), KAFKA, KAFKA)
    os.setxattr(file, ACL, acl(**READS | {"kafka": 0, "other": 4}))
    assert unreadable(str(file), KAFKA, KAFKA).endswith(f"can't read {file} (Permission denied)")


def test_where_ansible_is_not_root_nobody_tries_what_an_acl_grants(
    on_the_host: SimpleNamespace, tmp_path: Path, not_root: None
) -> None:
    file = tmp_path / "secrets.properties"
    file.write_text("")
    os.setxattr(file, ACL, acl(**READS))
    with pytest.raises(on_the_host.kafka_host.HostError, match=f"can read {file} is decided by its ACL"):
        on_the_host.kafka_user.unreadable(str(file), KAFKA, KAFKA)
    assert on_the_host.kafka_user.unreadable(str(file), STRANGER, STRANGER) == "", "it tries it as itself"
    os.removexattr(file, ACL)
    assert f"can't read {file} " in on_the_host.kafka_user.unreadable(str(file), KAFKA, KAFKA)


@needs_root
def test_a_file_is_given_no_acl_that_it_had_not_and_a_private_one_grants_nothing(write: Any, tmp_path: Path) -> None:
    plain, secrets = tmp_path / "server.properties", tmp_path / "secrets.properties"
    for each in (plain, secrets):
        each.write_text("# ours\n")
        each.chmod(0o640)
    os.setxattr(secrets, ACL, acl(**READS))
    os.setxattr(tmp_path, "system.posix_acl_default", acl(**READS))
    write(plain, "# ours\na=1\n")
    write(secrets, "a=1\n", private=True)
    assert ACL not in os.listxattr(plain) and plain.stat().st_mode & 0o777 == 0o640
    assert (secrets.stat().st_uid, secrets.stat().st_mode & 0o777) == (KAFKA, 0o600)


def test_where_ansible_is_not_root_a_file_that_kafka_could_not_read_is_refused_before_it_is_written(
    write: Any, on_the_host: SimpleNamespace, tmp_path: Path, not_root: None
) -> None:
    with pytest.raises(on_the_host.kafka_host.HostError, match="who could not read it"):
        write(tmp_path / "secrets.properties", "a=1\n", private=True)
    assert not (tmp_path / "secrets.properties").exists()


def test_a_link_is_neither_read_nor_written_through(write: Any, on_the_host: SimpleNamespace, tmp_path: Path) -> None:
    target = tmp_path / "shadow"
    target.write_text("root:hunter2\n")
    link = tmp_path / "server.properties"
    link.symlink_to(target)
    for ask in (
        lambda: write(link, "a=1\n"),
        lambda: on_the_host.kafka_host.read_text(str(link)),
        lambda: on_the_host.kafka_host.change(str(link), 0o666),
    ):
        with pytest.raises(on_the_host.kafka_host.HostError, match="is a symbolic link"):
            ask()
    (tmp_path / ".x.properties.lock").symlink_to(target)
    with (
        pytest.raises(on_the_host.kafka_host.HostError, match="is a symbolic link"),
        on_the_host.kafka_host.host_lock(str(tmp_path / "x.properties"), 1),
    ):
        pass
    assert (target.read_text(), target.stat().st_mode & 0o777, link.is_symlink()) == ("root:hunter2\n", 0o644, True)


@needs_root
def test_a_directory_that_another_user_linked_elsewhere_is_not_followed_by_root_and_one_of_roots_is(
    write: Any, on_the_host: SimpleNamespace, tmp_path: Path
) -> None:
    (tmp_path / "real").mkdir()
    link = tmp_path / "linked"
    link.symlink_to(tmp_path / "real")
    write(link / "a.properties", "a=1\n")
    assert (tmp_path / "real" / "a.properties").read_text() == "a=1\n"
    os.chown(link, STRANGER, STRANGER, follow_symlinks=False)
    with pytest.raises(on_the_host.kafka_host.HostError, match=f"is a symbolic link that user {STRANGER} made"):
        write(link / "b.properties", "a=1\n")
    assert not (tmp_path / "real" / "b.properties").exists()


def test_the_kept_old_configuration_is_its_owners_alone_also_one_kept_before(write: Any, tmp_path: Path) -> None:
    file, kept = tmp_path / "server.properties", tmp_path / "server.properties.before-kraft-runbook"
    file.write_text("ssl.key.password=by-hand\n")
    file.chmod(0o644)
    write(file, "# ours\na=1\n")
    assert (kept.read_text(), kept.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (
        "ssl.key.password=by-hand\n",
        0o600,
        0o644,
    )
    kept.chmod(0o644)
    file.write_text("by another hand\n")
    (tmp_path / ".server.properties.kraft-runbook").unlink()  # the consent to write over it
    write(file, "# ours\na=2\n")
    assert (kept.read_text(), kept.stat().st_mode & 0o777) == ("ssl.key.password=by-hand\n", 0o600)


def test_a_secrets_file_of_another_hand_loses_nothing_and_is_kept(
    write: Any, on_the_host: SimpleNamespace, tmp_path: Path
) -> None:
    file, wanted = tmp_path / "secrets.properties", {"private": True, "header": None}
    file.write_text("ssl.key.password=by-hand\nconnect.db.password=Hunter2\nlistener.own=Hunter2\n")
    file.chmod(0o640)
    held = file.read_bytes()
    for check in (True, False):
        with pytest.raises(on_the_host.kafka_host.HostError) as refused:
            write(file, "ssl.key.password=ours\n", check=check, **wanted)
        assert "is written whole: connect.db.password, listener.own" in refused.value.problem
        assert "Hunter2" not in refused.value.problem + refused.value.way_out
    assert [each.name for each in tmp_path.iterdir()] == [file.name] and file.read_bytes() == held
    file.write_text("ssl.key.password=by-hand\n")
    write(file, "ssl.key.password=ours\n", **wanted)
    kept = tmp_path / "secrets.properties.before-kraft-runbook"
    assert (kept.read_text(), kept.stat().st_mode & 0o777) == ("ssl.key.password=by-hand\n", 0o600)
    told = write(file, "ssl.key.password=Hunter3\na.b=c\n", **wanted)["said"]
    assert told == f"wrote {file}, with other values of: a.b, ssl.key.password"
    write(file, "a.b=c\n", **wanted)  # a secret that left the cluster file is this tool's own
    assert (file.read_text(), kept.read_text()) == ("a.b=c\n", "ssl.key.password=by-hand\n")


SECRETS = {"delegation.token.secret.key": "t", "password.encoder.secret": "p", "zookeeper.ssl.keystore.password": "z"}
UNREAD = list(ZOOKEEPER_KEYS)


def test_kraft_mode_neither_takes_zookeepers_secrets_away_nor_brings_them_back(write: Any, tmp_path: Path) -> None:
    file, whole = tmp_path / "secrets.properties", render_secrets(SECRETS)
    write(file, whole, private=True)
    assert not write(file, whole, private=True, unread=UNREAD)["changed"], "the way back needs them"
    left = {"delegation.token.secret.key": "t"}
    file.write_text(render_secrets(left))
    assert not write(file, whole, private=True, unread=UNREAD)["changed"], "they left with finalization"
    rotated = render_secrets({**SECRETS, "delegation.token.secret.key": "new"})
    assert write(file, rotated, private=True, unread=UNREAD)["changed"]
    assert parse_properties(file.read_text()) == {"delegation.token.secret.key": "new"}
    assert write(file, whole, private=True)["changed"], "migration mode reads them all"
    assert parse_properties(file.read_text()) == SECRETS
