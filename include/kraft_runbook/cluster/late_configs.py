"""Which dynamic configs of a broker count in ZooKeeper mode and not, or not for certain, in KRaft mode. Pure.

A broker in ZooKeeper mode reads its dynamic configuration before it makes its listeners (``KafkaServer.startup``), one
in KRaft mode after (``BrokerServer.startup``). What a channel takes only at its making is then what the file says. The
broker tells nobody: it shows the dynamic value as its own. Each kind was asked of Kafka 3.9.2
(``tests/unit/AskLateConfigs.java``):

- stores and PEM texts are loaded again when the dynamic configuration arrives. That is refused where the file has no
  store, or one with another subject or other names in its certificate (``SslFactory.createNewSslEngineFactory``), and
  with it all of that broker's dynamic configuration;
- so is a listener.security.protocol.map that lacks a listener of the file, or gives it another protocol
  (``DynamicListenerConfig.validateReconfiguration``, ``KafkaConfig.validateValues``);
- everything else of ssl, sasl and principals is lost.

Limits of connections and the number of network threads are set again in time. ``<default>`` never counts: Kafka ignores
such configs there (``DynamicBrokerConfig.perBrokerConfigs``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from kraft_runbook.cluster.broker_calls import CLIENT_AUTH, ENABLED, MECHANISM, prefixed
from kraft_runbook.cluster.client_security import SecurityProtocol
from kraft_runbook.cluster.config_defaults import OF_LISTENER, as_parsed, is_default
from kraft_runbook.cluster.config_meaning import PROTOCOLS, listed
from kraft_runbook.cluster.controller_calls import controllers_listener
from kraft_runbook.cluster.known_properties import is_known
from kraft_runbook.cluster.node_properties import broker_properties
from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.cluster.sensitive import HIDDEN, is_sensitive, looks_secret
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker, Listener

OF_ALL_LISTENERS = frozenset(
    f"""
    principal.builder.class {ENABLED} {MECHANISM} sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin
    sasl.kerberos.principal.to.local.rules sasl.kerberos.service.name sasl.kerberos.ticket.renew.jitter
    sasl.kerberos.ticket.renew.window.factor sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds
    sasl.login.refresh.window.factor sasl.login.refresh.window.jitter ssl.cipher.suites {CLIENT_AUTH}
    ssl.enabled.protocols ssl.endpoint.identification.algorithm ssl.engine.factory.class ssl.keymanager.algorithm
    ssl.protocol ssl.provider ssl.secure.random.implementation ssl.trustmanager.algorithm
    """.split()
)
"""What may be dynamic without a listener's name: ``DynamicListenerConfig.ReconfigurableConfigs`` without listeners,
limits and stores, and without sasl.jaas.config, which counts with a listener and a mechanism alone.
"""
JAAS, REAUTHENTICATION = "sasl.jaas.config", "connections.max.reauth.ms"
_TAKEN = re.compile(r"(ssl|sasl)\.|principal\.builder\.class$|connections\.max\.reauth\.ms$|security\.providers$")
"""What a channel takes of Kafka's own configs (``ChannelBuilders.channelBuilderConfigs``)."""


def is_late(key: str) -> bool:
    """Whether a broker's dynamic config of this name counts in ZooKeeper mode alone, or may (see the module). One of a
    listener that Kafka does not know is a plugin's.
    """
    own = OF_LISTENER.match(key)
    if not own:
        return key == PROTOCOLS or key in OF_ALL_LISTENERS
    base = key[own.end() :]
    if base in (JAAS, MECHANISM, "sasl.mechanism.controller.protocol"):
        return False  # Kafka reads these never so
    return bool(_TAKEN.match(_of_any_mechanism(base))) or not is_known(base)


def without_secret(key: str, value: str) -> str:
    """The value, or that it is hidden: a plugin's may be a secret too."""
    base = _of_any_mechanism(OF_LISTENER.sub("", key, count=1))
    return HIDDEN if is_sensitive(key) or looks_secret(value) or not is_known(base) else value


def lost_in_kraft(spec: ClusterSpec, broker: Broker, dynamic: Mapping[str, str]) -> Iterator[str]:
    """What the broker has dynamically and its file for KRaft mode otherwise, in words that begin after "has". Of a
    secret no more is known than whether the file has one too.

    ``dynamic``: the broker's own configs that are late, without secrets. Those of a listener that it does not have, or
    of TLS or SASL where the listener has none, count in neither mode.
    """
    in_file = broker_properties(spec, broker, BrokerMode.KRAFT)
    yield from _other_protocols(in_file, dynamic)
    told: dict[str, str] = {}
    for listener in (*broker.listeners, controllers_listener(spec)):
        own = prefixed(listener, "")
        for key, value in dynamic.items():
            base = key.removeprefix(own)
            if key == base and (base not in OF_ALL_LISTENERS or own + base in dynamic or own + base in in_file):
                continue  # it is not this listener's, or the listener's own counts
            if _counts(listener, base, in_file) and (phrase := _differs(key, value, _by_file(in_file, own, base))):
                told[key] = phrase
    yield from (told[key] for key in sorted(told))


def _other_protocols(in_file: Mapping[str, str], dynamic: Mapping[str, str]) -> Iterator[str]:
    if PROTOCOLS not in dynamic:
        return
    found = _protocols(dynamic[PROTOCOLS])
    for name, protocol in _protocols(in_file[PROTOCOLS]).items():
        if name not in found:
            yield f"{PROTOCOLS} without {name}"
        elif found[name] != protocol:
            yield f"{PROTOCOLS} with {name}:{found[name]}, and its file has {name}:{protocol}"


def _protocols(value: str) -> dict[str, str]:
    pairs = (each.rpartition(":")[::2] for each in listed(value))
    return {name.strip().upper(): protocol.strip().upper() for name, protocol in pairs}


def _counts(listener: Listener, base: str, in_file: Mapping[str, str]) -> bool:
    """Whether the listener takes such a config at all. Of a SASL listener a dynamic ssl.client.auth counts only where
    the file has one for it: ``ChannelBuilders.create`` asks the file whether there is one.
    """
    protocol = listener.protocol
    if base == CLIENT_AUTH and protocol is SecurityProtocol.SASL_SSL:
        return prefixed(listener, base) in in_file
    if base.startswith("ssl."):
        return protocol.is_tls
    if _of_any_mechanism(base).startswith(("sasl.", REAUTHENTICATION)):
        return protocol.is_sasl
    return True


def _by_file(in_file: Mapping[str, str], own: str, base: str) -> str | None:
    """What the listener has by the file. ``own``: its prefix. A config of one mechanism counts with both names alone,
    but for the time until a client logs in again (``SaslChannelBuilder.createConnectionsMaxReauthMsMap``).
    """
    keys = [own + base, base]
    if base != (general := _of_any_mechanism(base)):
        keys = [own + base, *((own + general, general) if general == REAUTHENTICATION else ())]
    return next((in_file[key] for key in keys if key in in_file), None)


def _differs(key: str, value: str, by_file: str | None) -> str | None:
    base = _of_any_mechanism(OF_LISTENER.sub("", key, count=1))
    if value == HIDDEN:
        return f"{key}, and its file has none" if by_file is None else None
    if is_default(base, value) if by_file is None else _meant(base, value) == _meant(base, by_file):
        return None
    return f"{key}={value}, and its file has {'nothing' if by_file is None else by_file}"


def _meant(base: str, value: str) -> str:
    spelt = as_parsed(base, value)
    return ",".join(sorted(spelt.split(","))) if base == ENABLED else spelt


def _of_any_mechanism(base: str) -> str:
    """A listener's config without the name of a SASL mechanism before it."""
    rest = base.partition(".")[2]
    return rest if rest.startswith("sasl.") or rest == REAUTHENTICATION else base
