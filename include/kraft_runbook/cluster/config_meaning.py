"""What a broker's properties mean to Kafka 3.9, whatever their spelling, so that two files can be compared. Pure.

Kafka trims values, and lists by their commas (``ConfigDef.parseType``). Of listeners it derives what is not set
(``KafkaConfig.getInterBrokerListenerNameAndSecurityProtocol``, ``effectiveAdvertisedListeners``).
"""

from __future__ import annotations

from collections.abc import Mapping

from kraft_runbook.cluster.sensitive import is_sensitive

LISTENERS, ADVERTISED, PROTOCOLS = "listeners", "advertised.listeners", "listener.security.protocol.map"
INTER_BROKER, BY_PROTOCOL, OF_CONTROLLERS = (
    "inter.broker.listener.name",
    "security.inter.broker.protocol",
    "controller.listener.names",
)
IBP, NEWEST = "inter.broker.protocol.version", {"3.9-IV0": "3.9"}
LOG_DIRS, LOG_DIR = "log.dirs", "log.dir"
DEFAULT_LISTENERS = "PLAINTEXT://:9092"
DEFAULT_PROTOCOLS = "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL"
PROVIDERS = "config.providers"


def meaning(properties: Mapping[str, str], *, newest_ibp: str) -> dict[str, str]:
    """The properties in one spelling, with what Kafka derives where a file says nothing. Sensitive values stay.

    ``newest_ibp``: what inter.broker.protocol.version is without one.
    """
    found = {key: value if is_sensitive(key) else value.strip() for key, value in properties.items()}
    listeners = _list(found.get(LISTENERS) or DEFAULT_LISTENERS)
    advertised = _list(found.get(ADVERTISED) or ",".join(listeners))
    names = {each.partition("://")[0].upper() for each in (*listeners, *advertised)}
    names |= {each.upper() for each in _list(found.get(OF_CONTROLLERS, ""))}
    protocols = dict(each.partition(":")[::2] for each in _list(found.get(PROTOCOLS) or DEFAULT_PROTOCOLS))
    used = {name.strip().upper(): protocol.strip().upper() for name, protocol in protocols.items()}
    found |= {
        LISTENERS: ",".join(listeners),
        ADVERTISED: ",".join(advertised),
        PROTOCOLS: ",".join(f"{name}:{used[name]}" for name in sorted(names & used.keys())),
        LOG_DIRS: ",".join(_list(found.get(LOG_DIRS) or found.get(LOG_DIR) or "/tmp/kafka-logs")),  # noqa: S108
    }
    found.pop(LOG_DIR, None)
    if not found.get(INTER_BROKER):  # where both are set, Kafka does not start
        found[INTER_BROKER] = found.pop(BY_PROTOCOL, "") or "PLAINTEXT"
    if "process.roles" not in found:
        ibp = found.get(IBP) or newest_ibp
        found[IBP] = NEWEST.get(ibp, ibp)
    if "super.users" in found:
        found["super.users"] = ";".join(sorted({each.strip() for each in found["super.users"].split(";")} - {""}))
    if "zookeeper.connect" in found:
        found["zookeeper.connect"] = ",".join(_list(found["zookeeper.connect"]))
    return found


def alike(
    on_disk: Mapping[str, str], rendered: Mapping[str, str], *, newest_ibp: str
) -> tuple[dict[str, str], dict[str, str]]:
    """Both by their meaning, and without what makes no difference between the two: providers that the file needs none
    of, since its secrets stand there in clear; an advertised host that the file leaves to the machine's own name
    (``KRB-PRE-008`` compares what the broker then advertises).
    """
    held, wanted = meaning(on_disk, newest_ibp=newest_ibp), meaning(rendered, newest_ibp=newest_ibp)
    if PROVIDERS not in held:
        wanted = {key: value for key, value in wanted.items() if not key.startswith(PROVIDERS)}
    if not on_disk.get(ADVERTISED, "").strip():
        named = [each.partition("://") for each in _list(held[ADVERTISED])]
        if all(place.startswith(":") for _, _, place in named) and [
            (name, place.rpartition(":")[2]) for name, _, place in named
        ] == [(each.partition("://")[0], each.rpartition(":")[2]) for each in _list(wanted[ADVERTISED])]:
            held[ADVERTISED] = wanted[ADVERTISED]
    return held, wanted


def _list(value: str) -> list[str]:
    return [each.strip() for each in value.split(",") if each.strip()]
