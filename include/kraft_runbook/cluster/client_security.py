"""How this tool's own clients log in to Kafka and to ZooKeeper, as a cluster file says it."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from pydantic import field_validator, model_validator

from kraft_runbook.cluster.spec_types import Model, SecretRef


class SecurityProtocol(StrEnum):
    """Kafka's ``security.protocol`` of a listener."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def is_tls(self) -> bool:
        return self in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)

    @property
    def is_sasl(self) -> bool:
        return self in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)


class SaslMechanism(StrEnum):
    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"


NO_LOGIN = {
    "GSSAPI": "Kerberos needs a ticket in every worker that a task may run in",
    "OAUTHBEARER": "a token of an identity provider would have to be fetched and renewed in every worker",
}
"""Mechanisms that Kafka knows and this tool's clients do not, and why."""


class ClientSecurity(Model):
    """How this tool's own clients reach a listener (ZooKeeper, brokers or controllers)."""

    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    key_password: SecretRef | None = None
    sasl_mechanism: SaslMechanism | None = None
    username: str | None = None
    password: SecretRef | None = None

    @field_validator("sasl_mechanism", mode="before")
    @classmethod
    def _mechanism_is_known(cls, value: object) -> object:
        """By name, with the reason, where this tool has no login of that kind."""
        if isinstance(value, str) and value.upper() in NO_LOGIN:
            raise ValueError(
                f"{value}: this tool has no login of that kind ({NO_LOGIN[value.upper()]}); give it one of its own:"
                f" {cls.logins()}, or a client certificate (SSL)"
            )
        return value

    @classmethod
    def logins(cls) -> str:
        """The mechanisms that this block takes, for a person."""
        return ", ".join(each.value for each in SaslMechanism)

    @model_validator(mode="after")
    def _sasl_is_complete(self) -> ClientSecurity:
        sasl = self.protocol.is_sasl
        missing = [name for name in ("sasl_mechanism", "username", "password") if getattr(self, name) is None]
        if sasl and missing:
            raise ValueError(f"{self.protocol} needs {', '.join(missing)}")
        return self


class ZookeeperSecurity(ClientSecurity):
    """The same for ZooKeeper, whose one login by password is DIGEST-MD5 (``DigestLoginModule``)."""

    sasl_mechanism: Literal["DIGEST-MD5"] | None = None  # type: ignore[assignment]
    check_names: bool | None = None
    """Whether a server's certificate must name its host. None: where the brokers ask for it, as far as the cluster file
    tells (``ZooKeeper.names_are_checked``).
    """

    @field_validator("sasl_mechanism", mode="before")
    @classmethod
    def _mechanism_is_zookeepers(cls, value: object) -> object:
        if value in set(SaslMechanism):
            raise ValueError(
                f"{value} is a mechanism of Kafka's listeners; ZooKeeper's login by password is DIGEST-MD5, whatever"
                " those use"
            )
        return value

    @classmethod
    def logins(cls) -> str:
        return "DIGEST-MD5"
