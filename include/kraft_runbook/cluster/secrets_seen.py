"""What was seen of a node's secrets: whom its logins name, and whether its host's file holds the same. No secret is in
it. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kraft_runbook.cluster.unread import Unread

OF_USER = "user_"
"""How an option of PlainLoginModule begins that lets a user in; its value is the password."""


@dataclass(frozen=True, slots=True)
class LoginSeen:
    """A login line (``sasl.jaas.config``). ``user``: that it logs in as; None: it names none. ``password``: a number in
    its place, the same for equal passwords within one look; None: it has none. ``users``: those that PlainLoginModule
    lets in, each with the number of its password. ``known``: of a controller's login to the brokers by SCRAM, whether
    ZooKeeper has that user with that password; None: it was not asked of that user.
    """

    user: str | None
    password: int | None = None
    users: Mapping[str, int] = field(default_factory=dict)
    known: bool | Unread | None = None


@dataclass(frozen=True, slots=True)
class SecretsSeen:
    """Of one node. ``logins``: its login lines of the migration, by property. ``as_on_host``: by property of its file
    with a secret, whether the file holds what would be written; one that the file lacks is left out. ``files``: by path
    of a file that a reference names, why the user that runs Kafka can't read it; empty where it can.
    """

    logins: Mapping[str, LoginSeen | Unread] = field(default_factory=dict)
    as_on_host: Mapping[str, bool | Unread] = field(default_factory=dict)
    files: Mapping[str, str | Unread] = field(default_factory=dict)
