"""Comparing secrets with those of the hosts, and asking logins whom they name. None is moved for it: a host gets
digests of what would be written, made with a key that this one look has and nothing keeps.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets as randomness
from collections.abc import Iterator, Mapping
from typing import Any

from kraft_runbook.cluster.client_security import ClientSecurity
from kraft_runbook.cluster.config_providers import PROVIDERS, REFERENCE, files_named
from kraft_runbook.cluster.login_modules import meaning_of, options_of
from kraft_runbook.cluster.secrets_seen import OF_USER, LoginSeen, SecretsSeen
from kraft_runbook.cluster.sensitive import is_sensitive
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker, Controller
from kraft_runbook.cluster.unread import Unread
from kraft_runbook.errors import RunbookError
from kraft_runbook.io.hosts.ansible_reports import value_of
from kraft_runbook.io.secrets import Secrets

LOGIN = "sasl.jaas.config"
NOT_UNDERSTOOD = Unread("it is not understood: write it as Kafka's documents do")


class Look:
    """One look's secrets: what its digests are made with, and the numbers that stand for passwords in its result."""

    def __init__(self, spec: ClusterSpec, secrets: Secrets) -> None:
        self.spec, self.secrets = spec, secrets
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

    def login(self, line: str) -> LoginSeen | Unread:
        try:
            options = options_of(line)
        except ValueError:
            return NOT_UNDERSTOOD
        users = {key[len(OF_USER) :]: self.digest(each) for key, each in options.items() if key.startswith(OF_USER)}
        own = options.get("password")
        return self.seen(options.get("username"), None if own is None else self.digest(own), users)

    def seen(self, user: str | None, password: str | None, users: Mapping[str, str]) -> LoginSeen:
        """A login whose passwords are digests."""
        numbers = {name: self.number(each) for name, each in users.items()}
        return LoginSeen(user, None if password is None else self.number(password), numbers)

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
                    self._logins[key] = look.login(followed)
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
            logins[key] = login if isinstance(login, Unread) else self._look.seen(**login)
        for key, part in told["compared"].items():
            held[key] = value_of(part)
        return SecretsSeen(logins, held, {path: value_of(part) for path, part in told["files"].items()})
