"""A cluster file's data, made of the brokers' own files: what is common once, what differs at each broker. Pure.

The files come without the values of secrets. What a cluster file can't say becomes a note for the operator, never a
guess.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from posixpath import dirname, join
from typing import Any

from kraft_runbook.cluster.cluster_file import is_filled
from kraft_runbook.cluster.config_meaning import BY_PROTOCOL, IBP, INTER_BROKER, listed
from kraft_runbook.cluster.config_providers import (
    ALLOWED_PATHS,
    FILE_CONFIG_PROVIDER,
    OWN_MEANS,
    PROVIDERS,
    REFERENCE,
    SECRETS,
    is_of_provider,
    providers_asked,
)
from kraft_runbook.cluster.distributions import Distribution, distribution_of
from kraft_runbook.cluster.kafka_version import KafkaVersion
from kraft_runbook.cluster.mode_settings import CALLS_CONTROLLERS
from kraft_runbook.cluster.naming import nodes, some
from kraft_runbook.cluster.node_properties import ID_GENERATION, MOST_RESERVED, ZOOKEEPER_AUTHORIZER
from kraft_runbook.cluster.own_listeners import listeners_of, log_dirs_of
from kraft_runbook.cluster.owned_properties import OWNED_PROPERTIES, PROPERTY_KEY
from kraft_runbook.cluster.sensitive import HIDDEN, is_sensitive
from kraft_runbook.errors import RunbookError

NOT_ON_ZOOKEEPER = ("process.roles", "zookeeper.metadata.migration.enable")
_AUTHORIZER, _SUPER_USERS, _CONNECT = "authorizer.class.name", "super.users", "zookeeper.connect"
CONFLUENTS_AUTHORIZER = "io.confluent.kafka.security.authorizer.ConfluentServerAuthorizer"
RULE_PROVIDERS = "confluent.authorizer.access.rule.providers"
_OUR_PROVIDER = f"{PROVIDERS}.{SECRETS}.class"
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x85\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class FoundBroker:
    """One broker, as its host and the inventory show it. ``properties``: its file, without the values of secrets.
    ``given_id``: the id that the inventory names, for a file without one.
    """

    host: str
    config_file: str
    service: str
    metrics_port: int
    properties: Mapping[str, str]
    given_id: int | None = None


@dataclass(frozen=True, slots=True)
class WantedController:
    """A controller that is to be: its host, and what the inventory says of it (keys of ``controllers[]``)."""

    host: str
    given: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Adopted:
    """The cluster file's data; the variables in which each secret's value is to be; what the operator must look at."""

    data: Mapping[str, Any]
    secrets: Mapping[str, str]
    notes: tuple[str, ...]


class Notes:
    """What the operator must look at. What holds of several nodes is said once, with all of them."""

    def __init__(self) -> None:
        self._texts: dict[str, dict[str, None]] = {}

    def add(self, text: str, *, who: str = "") -> None:
        """``who``: the node that it is about; none: all of the cluster."""
        self._texts.setdefault(text, {}).update({who: None} if who else {})

    def told(self) -> tuple[str, ...]:
        """The first few of the nodes are named."""
        return tuple(f"{some(who, 6)}: {text}" if who else text for text, who in self._texts.items())


def adopt(given: Mapping[str, Any], brokers: Sequence[FoundBroker], controllers: Sequence[WantedController]) -> Adopted:
    """``given``: the parts of the file that no broker's file tells (name, kafka, reach, service_manager).

    Raises RunbookError where a broker is not in ZooKeeper mode, has no id, or one that another has too.
    """
    found = sorted(((_id(each), each) for each in brokers), key=lambda pair: pair[0])
    _raise_unless_adoptable(found)
    notes = Notes()
    files = {node_id: {key: value.strip() for key, value in each.properties.items()} for node_id, each in found}

    def common(key: str, of: Callable[[Mapping[str, str]], Any]) -> Any:
        """What most brokers say, and a note of the others."""
        values = {node_id: of(properties) for node_id, properties in files.items()}
        most = _most(values.values())
        if others := [node_id for node_id, value in values.items() if value != most]:
            notes.add(
                f"{key}: one value holds for all brokers here, and {nodes('broker', others, 'has')} another one than"
                " the others; KRB-PRE-046 shows it until the files agree"
            )
        return most

    kafka = {**given["kafka"], "inter_broker_listener": common(INTER_BROKER, _inter_broker)}
    newest = KafkaVersion.of(str(kafka["version"])).minor
    if (ibp := common(IBP, lambda each: each.get(IBP) or newest)) != newest:
        kafka["inter_broker_protocol_version"] = ibp
    servers, slash, chroot = common(_CONNECT, lambda each: each.get(_CONNECT, "")).partition("/")
    authorizer = common(_AUTHORIZER, lambda each: each.get(_AUTHORIZER, ""))
    if authorizer not in ("", ZOOKEEPER_AUTHORIZER, CONFLUENTS_AUTHORIZER):
        notes.add(
            f"authorizer.class.name={authorizer}: name it, and the class that takes its place in KRaft mode, as"
            " authorizer: {zookeeper: …, kraft: …}"
        )
    users = common(_SUPER_USERS, lambda each: tuple(sorted(listed(each.get(_SUPER_USERS, ""), ";"))))
    if users and not authorizer:
        notes.add("super.users is in the brokers' files without an authorizer, and is rendered with one alone")
    entries: list[dict[str, Any]] = [
        {
            "id": node_id,
            "host": each.host,
            **({"rack": files[node_id]["broker.rack"]} if files[node_id].get("broker.rack") else {}),
            "listeners": listeners_of(files[node_id], each.host, partial(notes.add, who=each.host)),
            "log_dirs": log_dirs_of(files[node_id]),
            "config_file": each.config_file,
            "service": each.service,
            "metrics_port": each.metrics_port,
        }
        for node_id, each in found
    ]
    if others := sorted(
        {each[_OUR_PROVIDER] for each in files.values() if each.get(_OUR_PROVIDER)} - {FILE_CONFIG_PROVIDER}
    ):
        notes.add(
            f"{_OUR_PROVIDER}={', '.join(others)}: this tool takes the provider's name {SECRETS!r} for its own; give"
            " that provider another name in the brokers' files, else its references mean nothing any more"
        )
    secrets, plain = _told_apart(files, str(given["name"]), notes)
    once, of_each = _once(plain)
    of_zookeeper = {key: value for key, value in once.items() if key.startswith("zookeeper.")}
    if any(each.get(ALLOWED_PATHS) for each in files.values()):
        notes.add(
            f"{ALLOWED_PATHS}: Kafka reads secrets there alone, so this tool's files are proposed in the first of these"
            " paths; name others where that is no directory"
        )
    secrets_file = join(_for_secrets(files[found[0][0]], found[0][1].config_file), "kraft-runbook-secrets.properties")
    for entry in entries:
        own = {**of_each[entry["id"]], **_own_secrets(files[entry["id"]], secrets, str(entry["config_file"]), notes)}
        entry |= {"properties": own} if own else {}
    protocol = next(
        (each["protocol"] for each in entries[0]["listeners"] if each["name"] == kafka["inter_broker_listener"]),
        "PLAINTEXT",
    )
    data = {
        **given,
        "kafka": kafka,
        "zookeeper": {
            "servers": listed(servers),
            **({"chroot": f"{slash}{chroot}".rstrip("/")} if chroot.strip("/") else {}),
            **({"properties": of_zookeeper} if of_zookeeper else {}),
        },
        "brokers": entries,
        "controllers": _controllers(controllers, entries, distribution_of(str(kafka["version"])), notes),
        "controller_listener": {"name": _free_name(entries), "protocol": protocol},
        **({"authorizer": _authorizers(authorizer)} if authorizer else {}),
        **({"super_users": list(users)} if users and authorizer else {}),
        "broker_properties": {key: value for key, value in once.items() if key not in of_zookeeper},
        **_rule_providers(once, of_each, notes),
        **(
            {"secrets_file": secrets_file, "secrets": {key: {"env": name} for key, name in secrets.items()}}
            if secrets
            else {}
        ),
    }
    if others := sorted(providers_asked(plain[found[0][0]])):
        notes.add(
            f"values that refer to {', '.join(others)} stay as they are: where controllers need such a value, declare"
            " that provider under controller_properties, and give their hosts its files (KRB-PRE-103)"
        )
    if protocol != "PLAINTEXT" or any(
        key.startswith(("zookeeper.ssl.", "zookeeper.sasl.")) for key in files[found[0][0]]
    ):
        notes.add(
            "no file tells how this tool itself logs in: name it under broker_security, controller_security and"
            " zookeeper.security; and how the controllers' listener is secured (controller_listener,"
            f" controller_properties, and by which mechanism brokers call it: {CALLS_CONTROLLERS} under"
            " broker_properties)"
        )
    return Adopted(data, secrets, notes.told())


def _authorizers(class_name: str) -> bool | dict[str, str]:
    return {mode: class_name for mode in ("zookeeper", "kraft")} if class_name == CONFLUENTS_AUTHORIZER else True


def _rule_providers(
    once: Mapping[str, str], of_each: Mapping[int, Mapping[str, str]], notes: Notes
) -> dict[str, dict[str, str]]:
    """Where Confluent's authorizer reads its ACLs has one value on ZooKeeper and another in KRaft mode (cp-ansible)."""
    if any(RULE_PROVIDERS in each for each in of_each.values()):
        notes.add(
            f"{RULE_PROVIDERS} is not the same at all brokers, so none is proposed for KRaft mode: make it one, then"
            " set broker_properties_in_kraft and controller_properties"
        )
        return {}
    names = listed(once.get(RULE_PROVIDERS, ""))
    if "ZK_ACL" not in names:
        return {}
    in_kraft = {RULE_PROVIDERS: ",".join("KRAFT_ACL" if each == "ZK_ACL" else each for each in names)}
    notes.add(f"{RULE_PROVIDERS}: {in_kraft[RULE_PROVIDERS]} in KRaft mode and at the controllers is a proposal")
    return {"broker_properties_in_kraft": in_kraft, "controller_properties": in_kraft}


def _id(found: FoundBroker) -> int:
    text = (found.properties.get("broker.id") or found.properties.get("node.id", "")).strip()
    if text.isdigit():
        return int(text)
    if found.given_id is not None:
        return found.given_id
    raise RunbookError(
        f"{found.config_file} on {found.host} names no broker.id: Kafka generated it",
        way_out="give that host krb_id=N in the inventory; N is broker.id in meta.properties of its log directory",
    )


def _raise_unless_adoptable(found: Sequence[tuple[int, FoundBroker]]) -> None:
    twice = [node_id for node_id, times in Counter(node_id for node_id, _ in found).items() if times > 1]
    if not found or twice:
        hosts = some([each.host for node_id, each in found if node_id in twice], 6)
        raise RunbookError(
            f"several brokers have the id {twice[0]}: {hosts}" if twice else "the inventory names no broker",
            way_out="name each broker once in the inventory; two of one host are two names with one ansible_host",
        )
    for node_id, each in found:
        if on := [key for key in NOT_ON_ZOOKEEPER if each.properties.get(key, "").strip() not in ("", "false")]:
            raise RunbookError(
                f"broker {node_id} on {each.host} is not in ZooKeeper mode: {each.config_file} has {', '.join(on)}",
                way_out="adopt a cluster before its migration begins; else write its cluster file by hand",
            )
        if not each.properties.get(_CONNECT, "").strip():
            raise RunbookError(
                f"{each.config_file} on {each.host} names no {_CONNECT}: it is no file of a broker in ZooKeeper mode",
                way_out="name the broker's own file by --config-file, or by krb_config_file in the inventory",
            )
        if filled := sorted(key for key in OWNED_PROPERTIES if is_filled(each.properties.get(key, ""))):
            raise RunbookError(
                f"{each.config_file} on {each.host} holds ${{NAME}} in {', '.join(filled)}, which Kafka takes as it is"
                " and a cluster file would fill from the environment",
                way_out="write the value itself into that file, and let the broker read it, before it is adopted",
            )


def _inter_broker(properties: Mapping[str, str]) -> str:
    return (properties.get(INTER_BROKER) or properties.get(BY_PROTOCOL) or "PLAINTEXT").upper()


def _told_apart(
    files: Mapping[int, Mapping[str, str]], name: str, notes: Notes
) -> tuple[dict[str, str], dict[int, dict[str, str]]]:
    """The secrets that all brokers have, each with its variable; and each broker's other properties, as far as a
    cluster file can hold them.
    """
    sensitive = [{key for key, value in each.items() if _is_secret(key, value)} for each in files.values()]
    secrets: dict[str, str] = {}
    for key in sorted(set.intersection(*sensitive)):
        variable = "_".join(("KRB", *re.findall(r"[A-Z0-9]+", f"{name}.{key}".upper())))
        secrets[key] = variable if variable not in secrets.values() else f"{variable}_{len(secrets)}"
    plain: dict[int, dict[str, str]] = {}
    for node_id, properties in files.items():
        plain[node_id] = {}
        for key, value in properties.items():
            if _is_secret(key, value) or _is_derived(key, value, node_id):
                continue
            if why := _unsayable(key, value):
                notes.add(f"{key!r} is left out: {why}", who=f"broker {node_id}")
            else:
                plain[node_id][key] = value
    return secrets, plain


def _is_secret(key: str, value: str) -> bool:
    """A provider's own settings are none that a provider could give (``config.providers.vault.param.token``). A
    reference to a provider of the operator's stays as it is; one to the name that this tool takes for its own does not.
    """
    if is_of_provider(key):
        return False
    refers = value.startswith("${") and not value.startswith(f"${{{SECRETS}:")
    return value == HIDDEN or (is_sensitive(key) and not refers)


def _is_derived(key: str, value: str, node_id: int) -> bool:
    """Whether this tool renders the property itself."""
    return key in OWNED_PROPERTIES or (key == ID_GENERATION and value == "false" and node_id > MOST_RESERVED)


def _unsayable(key: str, value: str) -> str:
    if is_of_provider(key) and (value == HIDDEN or REFERENCE.search(value)):
        return f"a config provider's own secret, or reference, can't be carried: {OWN_MEANS}"
    if not PROPERTY_KEY.fullmatch(key):
        return "a property's name has letters, digits and . _ - $ alone"
    if _CONTROL.search(value):
        return "its value holds a control character"
    return "its value would be filled from the environment in a cluster file" if is_filled(value) else ""


def _once(plain: Mapping[int, Mapping[str, str]]) -> tuple[dict[str, str], dict[int, dict[str, str]]]:
    """The properties that every broker has, each with the most frequent value; and what each broker has otherwise."""
    shared = set.intersection(*(set(each) for each in plain.values()))
    once = {}
    for key in sorted(shared):
        value, times = Counter(each[key] for each in plain.values()).most_common(1)[0]
        if times > 1 or len(plain) == 1:
            once[key] = value
    own = {
        node_id: {key: value for key, value in each.items() if once.get(key) != value}
        for node_id, each in plain.items()
    }
    return once, own


def _own_secrets(
    properties: Mapping[str, str], secrets: Mapping[str, str], config_file: str, notes: Notes
) -> dict[str, str]:
    """References for the secrets that not every broker has, to a file of the host's own."""
    path = join(_for_secrets(properties, config_file), "kraft-runbook-own.properties")
    own = {
        key: f"${{{SECRETS}:{path}:{key}}}"
        for key, value in properties.items()
        if _is_secret(key, value) and key not in secrets
    }
    if own:
        notes.add(f"not every broker has {', '.join(sorted(own))}: write its value into {path} on each host that has")
    return own


def _for_secrets(properties: Mapping[str, str], config_file: str) -> str:
    """The directory for files with secrets."""
    return properties.get(ALLOWED_PATHS, "").split(",")[0] or dirname(config_file)


def _controllers(
    wanted: Sequence[WantedController], brokers: Sequence[Mapping[str, Any]], theirs: Distribution, notes: Notes
) -> list[dict[str, Any]]:
    """As the inventory names them. What it leaves open is a proposal that takes no port of a broker's."""
    first = max(each["id"] for each in brokers) + 1000
    folder = dirname(str(brokers[0]["config_file"]))
    if wanted:
        notes.add("controllers: what the inventory does not say of them is a proposal; nothing of it is on the hosts")
    entries = []
    for at, each in enumerate(wanted):
        taken = {
            port
            for broker in brokers
            if broker["host"] == each.host
            for port in (broker["metrics_port"], *(listener["port"] for listener in broker["listeners"]))
        }
        proposal = {
            "id": first + at,
            "host": each.host,
            "port": _free(9093, taken),
            "log_dir": theirs.controller_log_dir,
            "config_file": join(folder, theirs.controller_file),
            "service": theirs.controller_service,
            "metrics_port": _free(7071, taken),
        }
        entries.append({**proposal, **each.given})
    return entries


def _free(port: int, taken: set[int]) -> int:
    return next(each for each in range(port, port + len(taken) + 1) if each not in taken)


def _free_name(brokers: Iterable[Mapping[str, Any]]) -> str:
    """For the controllers' listener: control.plane.listener.name is CONTROLLER at many brokers."""
    taken = {listener["name"] for broker in brokers for listener in broker["listeners"]}
    return next(name for name in ("CONTROLLER", "KRAFT_CONTROLLER", "KRAFT_CONTROLLER_2") if name not in taken)


def _most(values: Iterable[Any]) -> Any:
    return Counter(values).most_common(1)[0][0]
