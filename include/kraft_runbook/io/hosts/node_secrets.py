"""Comparing secrets with those of the hosts, and asking logins whom they name. None is moved for it: a host gets
digests of what would be written, made with a key that this one look has and nothing keeps.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets as randomness
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kraft_runbook.cluster.client_security import ClientSecurity
from kraft_runbook.cluster.config_providers import PROVIDERS, REFERENCE, files_named
from kraft_runbook.cluster.login_modules import meaning_of, options_of, stored_key
from kraft_runbook.cluster.secrets_seen import OF_USER, LoginSeen, SecretsSeen
from kraft_runbook.cluster.sensitive import is_sensitive
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker, Controller
from kraft_runbook.cluster.unread import Unread
from kraft_runbook.errors import RunbookError
from kraft_runbook.io.hosts.ansible_reports import value_of
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.metadata.znodes.znode_rows import ScramCredential

LOGIN = "sasl.jaas.config"
MOST_ITERATIONS = 1_000_000
"""Of a credential that is looked at: Kafka's tools make 16,384 at most."""
NOT_UNDERSTOOD = Unread("it is not understood: write it as Kafka's documents do")


@dataclass(frozen=True, slots=True)
class ScramLogin:
    """How controllers log in to the brokers by SCRAM. ``key``: the property with the login. ``users``: what ZooKeeper
    keeps of those that were asked for; None: nothing.
    """

    key: str
    mechanism: str
    users: Mapping[str, ScramCredential | Unread | None] | Unread

    def asked(self) -> dict[str, Any]:
        """What a host needs to make of a password what ZooKeeper keeps of it."""
        users = {} if isinstance(self.users, Unread) else self.users
        return {
            "key": self.key,
            "mechanism": self.mechanism,
            "users": {
                name: {"salt": each.salt.hex(), "iterations": each.iterations}
                for name, each in users.items()
                if isinstance(each, ScramCredential) and each.iterations <= MOST_ITERATIONS
            },
        }

    def of(self, user: str | None) -> ScramCredential | Unread | bool | None:
        """What ZooKeeper keeps of the user; False: nothing. None: it was not asked."""
        if isinstance(self.users, Unread):
            return self.users
        return None if user is None or user not in self.users else self.users[user] or False


class Look:
    """One look's secrets: what its digests are made with, and the numbers that stand for passwords in its result.
    ``scram``: the controllers' login to the brokers, where it is by SCRAM.
    """

    def __init__(self, spec: ClusterSpec, secrets: Secrets, scram: ScramLogin | None = None) -> None:
        self.spec, self.secrets, self.scram = spec, secrets, scram
        self.key = randomness.token_bytes(32)
        self._numbers: dict[str, int] = {}

    def digest(self, text: str) -> str:
        return hmac.new(self.key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()

    def number(self, digest: str) -> int:
        return self._numbers.setdefault(digest, len(self._numbers) + 1)

    def follow(self, text: str) -> str | None:
        """The text with this tool's own secrets in the place of their references; None where it has others, which only
        the host can follow. Raises RunbookError (a secret is missing, or a text has references of both kinds).
        """
        found = REFERENCE.findall(text)
        own = [key for _, path, key in found if path == self.spec.secrets_file and key in self.spec.secrets]
        if not own:
            return None if found else text
        if len(own) < len(found):
            raise RunbookError("it has secrets of this tool and of the host", way_out="name all of it under 'secrets'")
        return REFERENCE.sub(lambda match: self.secrets(self.spec.secrets[match.group(3)]), text)

    def login(self, key: str, line: str) -> LoginSeen | Unread:
        try:
            options = options_of(line)
        except ValueError:
            return NOT_UNDERSTOOD
        users = {key[len(OF_USER) :]: self.digest(each) for key, each in options.items() if key.startswith(OF_USER)}
        user, own = options.get("username"), options.get("password")
        stored = None
        if self.scram and self.scram.key == key and own is not None:
            credential = self.scram.of(user)
            if isinstance(credential, ScramCredential) and credential.iterations <= MOST_ITERATIONS:
                made = stored_key(self.scram.mechanism, own, credential.salt, credential.iterations)
                stored = self.digest(made.hex())
        return self.seen(key, user, None if own is None else self.digest(own), users, stored)

    def seen(
        self, key: str, user: str | None, password: str | None, users: Mapping[str, str], stored: str | None
    ) -> LoginSeen:
        """A login whose passwords are digests. ``stored``: one of what a broker would keep of its password; None: that
        was not made.
        """
        numbers = {name: self.number(each) for name, each in users.items()}
        known = self._known(user, stored) if self.scram and self.scram.key == key else None
        return LoginSeen(user, None if password is None else self.number(password), numbers, known)

    def _known(self, user: str | None, stored: str | None) -> bool | Unread | None:
        found = self.scram.of(user) if self.scram else None
        if not isinstance(found, ScramCredential):
            return found
        return None if stored is None else stored == self.digest(found.stored_key.hex())

    def own_login(self, security: ClientSecurity) -> LoginSeen | Unread:
        """This tool's own."""
        if security.password is None:
            return LoginSeen(security.username)
        try:
            return LoginSeen(security.username, self.number(self.digest(self.secrets(security.password))))
        except RunbookError as error:
            return Unread(error.problem)


class NodeSecrets:
    """Of one node: what its host is asked, and with the host's answer what was seen."""

    def __init__(
        self,
        look: Look,
        node: Broker | Controller,
        properties: Mapping[str, str],
        in_kraft: Mapping[str, str] | None = None,
    ) -> None:
        """``in_kraft``: its properties in KRaft mode, where these are of another."""
        self._look = look
        self._logins: dict[str, LoginSeen | Unread] = {}
        self._unread: dict[str, Unread] = {}
        self.asked: dict[str, Any] = {
            "key": look.key.hex(),
            "scram": look.scram.asked() if look.scram else None,
            "config_file": node.config_file,
            "providers": {key: value for key, value in properties.items() if key.startswith(PROVIDERS)},
            "logins": {},
            "wanted": {},
            "wanted_in_kraft": {},
            "files": [],
        }
        for key, value, followed in self._secrets(properties):
            if key.endswith(LOGIN):
                if followed is None:
                    self.asked["logins"][key] = value
                else:
                    self._logins[key] = look.login(key, followed)
            self.asked["wanted"][key] = self._given(key, value, followed)
        others = {key: value for key, value in (in_kraft or {}).items() if properties.get(key) != value}
        for key, value, followed in self._secrets(others):
            self.asked["wanted_in_kraft"][key] = self._given(key, value, followed)
        named = dict.fromkeys((*files_named(properties), *files_named(in_kraft or {})))
        self.asked["files"] = [each for each in named if each != look.spec.secrets_file]

    def _secrets(self, properties: Mapping[str, str]) -> Iterator[tuple[str, str, str | None]]:
        """Each property with a secret, its value, and that with this tool's own secrets in it (``Look.follow``)."""
        for key, value in properties.items():
            if is_sensitive(key) or REFERENCE.search(value):
                try:
                    yield key, value, self._look.follow(value)
                except RunbookError as error:
                    self._unread[key] = Unread(error.problem)

    def _given(self, key: str, value: str, followed: str | None) -> dict[str, str]:
        """As a host is given what is to be: a digest of it, or the text whose references the host follows."""
        own = followed is not None and followed != value
        return {"digest": self._look.digest(meaning_of(key, followed or ""))} if own else {"text": value}

    @property
    def asks(self) -> bool:
        """Whether the host has anything to tell."""
        return any(self.asked[each] for each in ("logins", "wanted", "wanted_in_kraft", "files"))

    def seen(self, told: Mapping[str, Any] | Unread) -> SecretsSeen:
        """``told``: the host's answer, or why there is none."""
        logins = {**self._logins, **{key: each for key, each in self._unread.items() if key.endswith(LOGIN)}}
        held: dict[str, bool | Unread] = dict(self._unread)
        if isinstance(told, Unread):
            logins |= dict.fromkeys(self.asked["logins"], told)
            files = dict.fromkeys(self.asked["files"], told)
            keys = self.asked["wanted"] | self.asked["wanted_in_kraft"]
            return SecretsSeen(logins, held | dict.fromkeys(keys, told), files)
        for key, part in told["logins"].items():
            login = value_of(part)
            logins[key] = login if isinstance(login, Unread) else self._look.seen(key, **login)
        for key, part in told["compared"].items():
            held[key] = value_of(part)
        return SecretsSeen(logins, held, {path: value_of(part) for path, part in told["files"].items()})
