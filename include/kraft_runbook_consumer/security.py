"""TLS and the login: to ZooKeeper as kazoo takes them, and how a login that Kafka refuses is noticed."""

from __future__ import annotations

import importlib.util
import ssl
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType

from confluent_kafka import KafkaError

from kraft_runbook_consumer.errors import ConsumerError, SettingError

TLS = "zookeeper.ssl."
ENABLE, AUTHORITIES, STORE, STORE_PASSWORD, NAMES = (
    f"{TLS}client.enable",
    f"{TLS}truststore.location",
    f"{TLS}keystore.location",
    f"{TLS}keystore.password",
    f"{TLS}endpoint.identification.algorithm",
)
TYPES = (f"{TLS}truststore.type", f"{TLS}keystore.type")
USER, PASSWORD = "zookeeper.sasl.username", "zookeeper.sasl.password"
OF_ZOOKEEPER = frozenset({ENABLE, AUTHORITIES, STORE, STORE_PASSWORD, NAMES, *TYPES, USER, PASSWORD})
"""TLS by the names that Kafka's brokers have for it (KIP-515), with files in PEM; the login by names of our own, since
Java's is in a file of JAAS.
"""
NO_LOGIN = frozenset({KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError.SASL_AUTHENTICATION_FAILED})
"""What librdkafka tells, again and again, where a broker does not let it in, or is not the one that it should be."""
LOGIN_SECONDS = 30.0
"""A broker that starts may refuse for a moment: it has not read its users yet."""
APART_SECONDS = 15.0
"""librdkafka tries again after 10 s at most; refusals further apart are not one."""


def zookeeper_options(texts: Mapping[str, str]) -> Mapping[str, object]:
    """What kazoo's client is made with besides. Raises SettingError, which never quotes a password."""
    return MappingProxyType({**_tls(texts), **_login(texts)})


def _tls(texts: Mapping[str, str]) -> dict[str, object]:
    given = [each for each in texts if each.startswith(TLS) and each != ENABLE]
    enabled = texts.get(ENABLE, "false").lower()
    if enabled not in ("true", "false"):
        raise SettingError(f"{ENABLE}={texts[ENABLE]} is neither true nor false", way_out=f"set {ENABLE} to true")
    if enabled == "false":
        if given:
            raise SettingError(f"{given[0]} goes with TLS, which is off", way_out=f"set {ENABLE}=true")
        return {}
    for key in TYPES:
        if texts.get(key, "PEM").upper() != "PEM":
            raise SettingError(f"{key}={texts[key]} can't be read", way_out="give a file in PEM (openssl pkcs12 -in …)")
    names = texts.get(NAMES, "https").lower()
    if names not in ("https", ""):
        raise SettingError(f"{NAMES}={texts[NAMES]} is not known", way_out="leave it out, or empty for no check")
    _require_files(texts)
    options: dict[str, object] = {"use_ssl": True, "verify_certs": True, "check_hostname": names == "https"}
    if texts.get(AUTHORITIES):
        options["ca"] = texts[AUTHORITIES]
    if texts.get(STORE):  # certificate and key in one file
        options |= {"certfile": texts[STORE], "keyfile": texts[STORE]}
        if texts.get(STORE_PASSWORD):
            options["keyfile_password"] = texts[STORE_PASSWORD]
    return options


def _require_files(texts: Mapping[str, str]) -> None:
    """kazoo opens them only when it connects, and takes what it can't read for a server that is away."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    loads: dict[str, Callable[[str], None]] = {
        AUTHORITIES: context.load_verify_locations,
        # a password of its own, so that nobody is asked for one at a terminal
        STORE: lambda path: context.load_cert_chain(path, password=texts.get(STORE_PASSWORD) or "none"),
    }
    for key, load in loads.items():
        if not texts.get(key):
            continue
        try:
            load(texts[key])
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError; a password may be too long
            why = f"{type(error).__name__}: {error}" if isinstance(error, OSError) else type(error).__name__
            raise SettingError(  # the value is not quoted: somebody may have put the key itself there
                f"the file of {key} can't be used: {why}",
                way_out=f"name a file in PEM that this process can read, and the right {STORE_PASSWORD} where the key"
                " has one",
            ) from None


def _login(texts: Mapping[str, str]) -> dict[str, object]:
    user, password = texts.get(USER), texts.get(PASSWORD)
    if not user and not password:
        return {}
    if not user or not password:
        raise SettingError(f"of {USER} and {PASSWORD} one is missing", way_out="give both, or none")
    if importlib.util.find_spec("puresasl") is None:
        raise SettingError(f"{USER} needs pure-sasl, which is not there", way_out='pip install "pure-sasl>=0.6.2"')
    return {"sasl_options": {"mechanism": "DIGEST-MD5", "username": user, "password": password}}


class Logins:
    """Whether Kafka has refused the login for so long that waiting does not help. ``clock``: seconds."""

    def __init__(self, whose: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._whose, self._clock = whose, clock
        self._first = self._last = float("-inf")
        self._why = ""

    def told(self, error: KafkaError) -> None:
        """What librdkafka tells: a refusal counts, anything else does not."""
        if error.code() not in NO_LOGIN:
            return
        now = self._clock()
        if now - self._last > APART_SECONDS:
            self._first = now
        self._last, self._why = now, error.str()

    def let_in(self) -> None:
        """Kafka has answered."""
        self._first = self._last = float("-inf")

    def require(self) -> None:
        """Raises ConsumerError where it has been refused for LOGIN_SECONDS."""
        if self._last - self._first >= LOGIN_SECONDS:
            raise ConsumerError(
                f"Kafka does not let {self._whose} in: {self._why}",
                way_out="correct coordination.migration.security.protocol, .sasl.* and .ssl.*",
            )
