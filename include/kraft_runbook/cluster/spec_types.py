"""What the values of a cluster file are made of: numbers, names and addresses with their bounds, and where a secret is
found.
"""

from __future__ import annotations

import re
from ipaddress import IPv6Address
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

Port = Annotated[int, Field(ge=1, le=65535)]
NodeId = Annotated[int, Field(ge=0, le=2_147_483_647)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"{text!r} is no pattern: {error}") from None
    return text


GroupPatterns = Annotated[
    tuple[Annotated[str, Field(min_length=1), AfterValidator(_pattern)], ...], Field(min_length=1)
]
"""Of names of consumer groups: each fits whole names."""


def fits_whole(patterns: GroupPatterns, name: str) -> bool:
    """Whether one of the patterns fits the whole name."""
    return any(re.fullmatch(each, name) for each in patterns)


def _bare_if_ipv6(host: str) -> str:
    if not any(each in host for each in ":[]%"):
        return host
    try:
        IPv6Address(host)
    except ValueError:
        bare = host.strip("[]").partition("%")[0]
        raise ValueError(
            f"{host!r} is no host; an IPv6 address stands alone, without brackets, port and zone"
            f" ({bare if ':' in bare else '::1'})"
        ) from None
    if "%" in host:
        raise ValueError(
            f"{host!r} has a zone, which means something on one machine only; give an address that every node can reach"
        )
    return host


Host = Annotated[
    str,
    Field(min_length=1, pattern=r"^[A-Za-z0-9]([A-Za-z0-9.\-]*[A-Za-z0-9])?$|[:\[\]%]"),
    AfterValidator(_bare_if_ipv6),
]
"""A name, an IPv4 address, or a bare IPv6 address."""
BindHost = Annotated[
    str, Field(pattern=r"^$|^[A-Za-z0-9]([A-Za-z0-9.\-]*[A-Za-z0-9])?$|[:\[\]%]"), AfterValidator(_bare_if_ipv6)
]
"""The same, or empty: every address of the machine."""
EVERY_ADDRESS = ("", "0.0.0.0", "::")  # noqa: S104 - what a cluster file may say of Kafka; nothing binds here


def _listener_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_\-]*", name):
        raise ValueError(f"{name!r} is no listener's name: it has letters, digits, - and _ alone, and no - in front")
    return name.upper()


ListenerName = Annotated[str, AfterValidator(_listener_name)]
"""In capitals, as Kafka keeps each name whatever its spelling (``ListenerName.normalised``). Written so everywhere:
``controller.listener.names`` counts in capitals alone (``KafkaConfig.controllerListeners``, 3.9 to 4.x). A property of
one listener has the name in small letters (``ListenerName.configPrefix``). Kafka takes other signs too, but with a dot
in the name it tells a listener's dynamic configs no longer apart (``DynamicBrokerConfig.ListenerConfigRegex``).
"""


class Model(BaseModel):
    """A frozen part of a cluster file; unknown keys are errors, since a misspelt key must not be dropped in silence."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)


class SecretRef(Model):
    """Where a secret is found: an environment variable, or the password of an Airflow connection. Never the value."""

    env: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    airflow_connection: str | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _exactly_one(self) -> SecretRef:
        if (self.env is None) == (self.airflow_connection is None):
            raise ValueError("name the secret once: either 'env: NAME' or 'airflow_connection: ID'")
        return self

    def __str__(self) -> str:
        return f"environment variable {self.env}" if self.env else f"Airflow connection {self.airflow_connection}"
