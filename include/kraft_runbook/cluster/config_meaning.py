"""What a broker's properties mean to Kafka 3.9, whatever their spelling, so that two files can be compared. Pure.

Values are as Kafka parses them, and its defaults count (``config_defaults``). Of listeners it derives what is not set
(``KafkaConfig.getInterBrokerListenerNameAndSecurityProtocol``, ``effectiveAdvertisedListeners``).
"""

from __future__ import annotations

from collections.abc import Mapping

from kraft_runbook.cluster.config_defaults import as_parsed, is_default
from kraft_runbook.cluster.config_providers import PROVIDERS, SECRETS
from kraft_runbook.cluster.sensitive import is_sensitive

LISTENERS, ADVERTISED, PROTOCOLS = "listeners", "advertised.listeners", "listener.security.protocol.map"
INTER_BROKER, BY_PROTOCOL, OF_CONTROLLERS = (
    "inter.broker.listener.name",
    "security.inter.broker.protocol",
    "controller.listener.names",
)
IBP, NEWEST = "inter.broker.protocol.version", {"3.9-IV0": "3.9"}
ROLES, BOTH = "process.roles", ["broker", "controller"]
CONNECT = "zookeeper.connect"
LOG_DIRS, LOG_DIR = "log.dirs", "log.dir"
DEFAULT_LISTENERS = "PLAINTEXT://:9092"
DEFAULT_PROTOCOLS = "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL"


def meaning(properties: Mapping[str, str], *, newest_ibp: str) -> dict[str, str]:
    """The properties in one spelling, with what Kafka derives where a file says nothing. Sensitive values stay. With
    both roles no order of roles and listeners is kept, and a controller listener that is advertised as it is bound is
    left out of what is advertised, since Kafka derives that (``KafkaConfig.effectiveAdvertisedControllerListeners``).

    ``newest_ibp``: what inter.broker.protocol.version is without one.
    """
    found = {key: value if is_sensitive(key) else as_parsed(key, value) for key, value in properties.items()}
    listeners = _endpoints(found.get(LISTENERS) or DEFAULT_LISTENERS)
    of_controllers = {each.upper() for each in listed(found.get(OF_CONTROLLERS, ""))}
    for_clients = [each for each in listeners if each.partition("://")[0] not in of_controllers]
    advertised = sorted(_endpoints(found.get(ADVERTISED) or ",".join(for_clients)))
    names = {each.partition("://")[0].upper() for each in (*listeners, *advertised)}
    names |= of_controllers
    if not found.get(ROLES):  # an empty list is no role
        found.pop(ROLES, None)
    elif sorted(listed(found[ROLES])) == BOTH:
        found[ROLES] = ",".join(BOTH)
        listeners.sort()
        advertised = [each for each in advertised if each in for_clients or each not in listeners]
    protocols = dict(each.partition(":")[::2] for each in listed(found.get(PROTOCOLS) or DEFAULT_PROTOCOLS))
    used = {name.strip().upper(): protocol.strip().upper() for name, protocol in protocols.items()}
    found |= {
        LISTENERS: ",".join(listeners),
        ADVERTISED: ",".join(advertised),
        PROTOCOLS: ",".join(f"{name}:{used[name]}" for name in sorted(names & used.keys())),
        LOG_DIRS: ",".join(listed(found.get(LOG_DIRS) or found.get(LOG_DIR) or "/tmp/kafka-logs")),  # noqa: S108
    }
    found.pop(LOG_DIR, None)
    if not found.get(INTER_BROKER):  # where both are set, Kafka does not start
        found[INTER_BROKER] = found.pop(BY_PROTOCOL, "") or "PLAINTEXT"
    found[INTER_BROKER] = found[INTER_BROKER].upper()
    if ROLES not in found:
        if not found.get("broker.id") and found.get("node.id"):  # KafkaConfig.populateSynonyms
            found["broker.id"] = found["node.id"]
        if found.get("node.id") == found.get("broker.id"):
            found.pop("node.id", None)
        ibp = found.get(IBP) or newest_ibp
        found[IBP] = NEWEST.get(ibp, ibp)
    if "super.users" in found:
        found["super.users"] = ";".join(sorted({each.strip() for each in found["super.users"].split(";")} - {""}))
    if found.get(PROVIDERS):
        found[PROVIDERS] = ",".join(sorted(_providers(found)))
    if CONNECT in found:
        servers, _, chroot = found[CONNECT].partition("/")  # as ConnectStringParser does
        found[CONNECT] = ",".join(listed(servers)) + (f"/{chroot}" if chroot else "")
    return found


def alike(
    on_disk: Mapping[str, str], rendered: Mapping[str, str], *, newest_ibp: str
) -> tuple[dict[str, str], dict[str, str]]:
    """Both by their meaning, and without what makes no difference between the two: a key that only one of them sets, to
    its default; this tool's own provider, where the file needs none, since its secrets stand there in clear or come
    from another one; an advertised host that the file leaves to the machine's own name (``KRB-PRE-008`` compares what
    the broker then advertises), and where a node with both roles advertises its controller listener (``KRB-PRE-122``
    compares what the metadata log then has).
    """
    held, wanted = meaning(on_disk, newest_ibp=newest_ibp), meaning(rendered, newest_ibp=newest_ibp)
    if SECRETS not in _providers(held):
        wanted = {key: value for key, value in wanted.items() if not key.startswith(f"{PROVIDERS}.{SECRETS}.")}
        if others := sorted(_providers(wanted) - {SECRETS}):
            wanted[PROVIDERS] = ",".join(others)
        else:
            wanted.pop(PROVIDERS, None)
    if not _of_controllers(held):
        own = _of_controllers(wanted)
        wanted[ADVERTISED] = ",".join(each for each in listed(wanted[ADVERTISED]) if each not in own)
    if not on_disk.get(ADVERTISED, "").strip():
        named = [each.partition("://") for each in listed(held[ADVERTISED])]
        if all(place.startswith(":") for _, _, place in named) and [
            (name, place.rpartition(":")[2]) for name, _, place in named
        ] == [(each.partition("://")[0], each.rpartition(":")[2]) for each in listed(wanted[ADVERTISED])]:
            held[ADVERTISED] = wanted[ADVERTISED]
    for one, other in ((held, wanted), (wanted, held)):
        for key in [key for key in one.keys() - other.keys() if is_default(key, one[key])]:
            del one[key]
    return held, wanted


def _of_controllers(known: Mapping[str, str]) -> list[str]:
    """The controller listeners that a file of this meaning advertises."""
    names = {each.upper() for each in listed(known.get(OF_CONTROLLERS, ""))}
    return [each for each in listed(known[ADVERTISED]) if each.partition("://")[0] in names]


def _providers(known: Mapping[str, str]) -> set[str]:
    """Their names, of which Kafka trims no blank (``AbstractConfig.instantiateConfigProviders``)."""
    return set(known.get(PROVIDERS, "").split(",")) - {""}


def _endpoints(value: str) -> list[str]:
    """Listeners, their names in capitals (``ListenerName.normalised``)."""
    return [f"{name.upper()}{sep}{place}" for name, sep, place in (each.partition("://") for each in listed(value))]


def listed(value: str, by: str = ",") -> list[str]:
    """The entries of a property that holds a list, without empty ones."""
    return [each.strip() for each in value.split(by) if each.strip()]
