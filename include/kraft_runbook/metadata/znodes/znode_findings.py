"""What is wrong with the znodes that the deep read meets: what a comparison can't read, what Kafka can't go on with,
and the stored passwords.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from kraft_runbook.cluster.observation import Consequence, Found, StoredPassword, Unread, ZnodeFault
from kraft_runbook.metadata.canonical_rows import Kind
from kraft_runbook.metadata.topic_columns import TopicColumns
from kraft_runbook.metadata.znodes.fault_terms import too_long
from kraft_runbook.metadata.znodes.password_encoder import Undecodable, cipher_of, decode_password
from kraft_runbook.metadata.znodes.tally import Tally
from kraft_runbook.metadata.znodes.topic_config_values import REMOTE_STORAGE, is_true
from kraft_runbook.metadata.znodes.znode_faults import faults_of, passwords_of, topic_config_faults
from kraft_runbook.metadata.znodes.znode_json import parse_object
from kraft_runbook.metadata.znodes.znode_rows import Decoding, rows_of


@dataclass(frozen=True, slots=True)
class PasswordSecrets:
    """``password.encoder.secret`` and ``password.encoder.old.secret``, where the cluster file names them, and why the
    first is not at hand.
    """

    current: str | None = None
    old: str | None = None
    why_not: str = ""


class ZnodeFindings:
    """Filled znode by znode. ``decoding``: as a comparison decodes; its passwords stay undecoded, they are
    judged here.
    """

    def __init__(self, decoding: Decoding, secrets: PasswordSecrets) -> None:
        self._decoding = Decoding(decoding.fingerprints)
        self._secrets = secrets
        self._faults = {each: Tally() for each in Consequence}
        self._passwords: list[StoredPassword] = []
        self.unreadable = Tally()
        self.tiered = Tally()
        """Topics with ``remote.storage.enable=true``."""

    def begun_anew(self) -> ZnodeFindings:
        """The same judge with nothing seen yet: for a first look that does not count."""
        return ZnodeFindings(self._decoding, self._secrets)

    def see(self, path: str, data: bytes | None) -> bool:
        """Judge one znode. Whether it can be read: what it says may then be taken as what Kafka writes. ``data``: None
        where it holds none at all (null).
        """
        readable = True
        for row in rows_of(path, data or b"", self._decoding):
            if row.kind is Kind.UNREADABLE:
                readable = False
                self.unreadable.add(path)
        for fault in faults_of(path, data):
            readable = readable and fault.consequence is Consequence.NOTED
            self.add(fault)
        topic = path.removeprefix("/config/topics/")
        if topic != path and readable and data:
            self._see_tiered(topic, parse_object(data).get("config", {}).get(REMOTE_STORAGE, ""))
        if path.startswith(("/config/brokers/", "/config/topics/")):
            for name, encoded in passwords_of(data or b"").items():
                self._see_password(path, name, encoded)
        return readable

    def see_topic_configs(self, columns: TopicColumns) -> None:
        """The configs of topics that were read in bulk: what their znodes hold is known to be names and texts, and no
        password.
        """
        judged = lru_cache(maxsize=4096)(_judge)  # most topics of a cluster have one of a few configs
        configs = columns.configs
        for topic, name, value in zip(configs.topic.tolist(), configs.name, configs.value, strict=True):
            path = ""
            for consequence, problem in judged(name, value):
                path = path or f"/config/topics/{columns.names[topic]}"
                self.add(ZnodeFault(path, consequence, problem))
            if name == REMOTE_STORAGE:
                self._see_tiered(columns.names[topic], value)

    def add(self, fault: ZnodeFault) -> None:
        self._faults[fault.consequence].add(str(fault))

    @property
    def faults(self) -> Mapping[Consequence, Found]:
        return {consequence: tally.found for consequence, tally in self._faults.items() if tally.count}

    @property
    def passwords(self) -> tuple[StoredPassword, ...]:
        return tuple(self._passwords)

    def _see_tiered(self, topic: str, value: str) -> None:
        if is_true(value):
            self.tiered.add(topic)

    def _see_password(self, path: str, name: str, encoded: str) -> None:
        """The copy puts it into a record as it is decoded; what it can't decode ends the copy before that."""
        problem: str | Unread | None = Unread(self._secrets.why_not)
        if self._secrets.current is not None:
            try:
                for consequence, told in too_long(name, decode_password(encoded, self._secrets.current)):
                    self.add(ZnodeFault(path, consequence, told))
                problem = None
            except Undecodable as error:
                problem = self._by_the_old_secret(encoded) or str(error)
        self._passwords.append(StoredPassword(path, name, cipher_of(encoded), problem))

    def _by_the_old_secret(self, encoded: str) -> str:
        """That the old secret decodes it, in words; empty where it does not."""
        if self._secrets.old is None:
            return ""
        try:
            decode_password(encoded, self._secrets.old)
        except Undecodable:
            return ""
        return "it is encoded with password.encoder.old.secret, which the copy does not try"


def _judge(name: str, value: str) -> Iterable[tuple[Consequence, str]]:
    return tuple(topic_config_faults(name, value))
