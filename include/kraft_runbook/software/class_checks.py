"""The classes that the nodes' configurations name, and whether the target has them. A node whose class is missing ends
at its start, or goes on without what the class was for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from kraft_runbook.cluster.class_keys import CAME_WITH, class_key
from kraft_runbook.cluster.feature_levels import NamedClass, NamedClasses, NodeHost
from kraft_runbook.cluster.kafka_version import release_of
from kraft_runbook.cluster.naming import some
from kraft_runbook.cluster.node_properties import kraft_properties
from kraft_runbook.cluster.observation import ClusterObservation, DynamicConfigs, Unread
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_parts import Software
from kraft_runbook.runbook.check_results import SAMPLE, Finding, Severity, Verdict, settle, unknown
from kraft_runbook.runbook.checklist import Needs
from kraft_runbook.runbook.differing_files import is_hidden
from kraft_runbook.runbook.read_parts import needed
from kraft_runbook.software.checklist import CHECKS, both
from kraft_runbook.software.stages import Gate

check = CHECKS.check
_OAUTH = "org.apache.kafka.common.security.oauthbearer"
INSTEAD: Mapping[str, str] = {
    f"{_OAUTH}.secured.OAuthBearerLoginCallbackHandler": f"{_OAUTH}.OAuthBearerLoginCallbackHandler",
    f"{_OAUTH}.secured.OAuthBearerValidatorCallbackHandler": f"{_OAUTH}.OAuthBearerValidatorCallbackHandler",
    "kafka.security.authorizer.AclAuthorizer": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
}
"""Classes of 3.9 that Kafka 4 has under another name. 3.9 has the new name too."""


@check(
    "KRB-UPG-017",
    severity=Severity.BLOCKING,
    gates={Gate.UP},
    needs=Needs.HOSTS,
    fix=(
        "put the jar that has the class beside the target's own on each host. Or name the class that takes its place in"
        " the cluster file, and let the nodes have it before the roll (docs/software.md)"
    ),
)
def the_target_has_every_class_that_is_named(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every class that a node's configuration names is in the target's home.

    Handlers, reporters, authorizer, policies, login modules and the like: of the node's file for each listener, of its
    login file (JAAS), and of dynamic configurations. A node that does not find one ends at its start. Options of login
    modules are not read.
    """
    found = _grouped(
        seen,
        lambda host: missing_classes(host, both(spec)[-1], written=kraft_properties(spec, host.node_id)),
        "it has them",
    )
    dynamic = seen.margins if isinstance(seen.margins, Unread) else seen.margins.dynamic
    unread = [dynamic.reason] if isinstance(dynamic, Unread) else list(_unread_names(dynamic))
    if not unread or found.verdict is Verdict.FAIL:
        return found
    return unknown("; ".join([*([found.evidence] if found.verdict is Verdict.UNKNOWN else []), *unread]))


@check(
    "KRB-UPG-018",
    severity=Severity.WARNING,
    gates={Gate.UP},
    needs=Needs.HOSTS,
    fix="put them beside the target's own jars too, or know that nothing needs them there",
)
def the_target_has_every_further_jar(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every jar that somebody put beside those of the version that runs is in the target's too.

    Kafka's own jars are not compared. The purpose of such a jar is not known from here: a plug-in may load classes that
    no property names.
    """

    def lacking(host: NodeHost) -> Iterator[str | Unread]:
        old, new = (host.further_jars.get(each.home, Unread("not looked at")) for each in (spec.kafka, both(spec)[-1]))
        for each in (old, new):
            if isinstance(each, Unread):
                yield each
        if not isinstance(old, Unread) and not isinstance(new, Unread):
            there = set(map(without_version, new))
            gone = [jar for jar in old if without_version(jar) not in there]
            if gone:
                yield f"{both(spec)[-1].home} lacks {', '.join(gone)}"

    return _grouped(seen, lacking, "it has them")


def _unread_names(dynamic: DynamicConfigs) -> Iterator[str]:
    for whose, held in dynamic.classes.items():
        for key, names in held.items():
            if isinstance(names, Unread):
                yield f"the class that the dynamic {key} of {whose} names is not known ({names.reason}): set it anew"


def without_version(jar: str) -> str:
    """A jar's name up to the first hyphen with a digit behind it."""
    name = jar.removesuffix(".jar")
    at = next((i for i, c in enumerate(name[:-1]) if c == "-" and name[i + 1].isdigit()), len(name))
    return name[:at]


def missing_classes(
    host: NodeHost, software: Software, *, written: Mapping[str, str], back: bool = False
) -> Iterator[str | Unread]:
    """What a node would not find on that software, one text for each class; Unread for what could not be told. A key
    that it does not know names no class to it, and neither does a value of its file that is ``written`` over before it
    starts. ``back``: without what ``seen_in_a_process`` tells.
    """
    if isinstance(host.classes, Unread):
        yield host.classes
        return
    yield from (Unread(each) for each in host.classes.unread)
    if not back:
        yield from (Unread(each) for each in host.classes.unasked or ())
    release = release_of(software.version)
    for named in host.classes.named:
        if _is_written_over(named, host.config, written):
            continue
        if any(release < CAME_WITH.get(class_key(word) or "", (0, 0)) for word in named.key.split()):
            continue
        there = named.found.get(software.home, Unread(f"{software.home} was not looked at"))
        if isinstance(there, Unread):
            yield Unread(f"whether {software.home} has {_what(named)} could not be read: {there.reason}")
        elif there is None and not (back and _may_lie_outside(host.classes, named)):
            yield f"{named.key} names {_what(named)}, which no jar of {software.home} has{_instead(named)}"


def _is_written_over(named: NamedClass, held: Mapping[str, str] | Unread | None, written: Mapping[str, str]) -> bool:
    """Whether a property of the node's file names the class, and does so no more once the file is written. Secrets are
    not compared.
    """
    if isinstance(held, Unread) or held is None or named.key not in held:
        return False
    before, after = held[named.key], written.get(named.key, "")
    if after and is_hidden(named.key, before, after):
        return False
    return before != after and not (named.name and named.name in after)


def seen_in_a_process(host: NodeHost) -> Iterator[str]:
    """What only its process could tell of a node that is down: a class that no home has may lie elsewhere on the class
    path, and a variable may name one. It keeps no node from going back: it would stay down for it.
    """
    if isinstance(host.classes, Unread):
        return
    yield from host.classes.unasked or ()
    for named in host.classes.named:
        if _may_lie_outside(host.classes, named):
            yield (
                f"{named.key} names {_what(named)}, which no home is known to have; what else is on its class path is"
                " seen while it runs"
            )


def _may_lie_outside(classes: NamedClasses, named: NamedClass) -> bool:
    return classes.unasked is not None and not any(isinstance(jar, str) for jar in named.found.values())


def _what(named: NamedClass) -> str:
    return named.name or "a class (a config provider gives its name)"


def _instead(named: NamedClass) -> str:
    if named.name in INSTEAD:
        return f" (there it is {INSTEAD[named.name]})"
    held = [f"{jar} of {home}" for home, jar in named.found.items() if isinstance(jar, str)]
    return f" ({', '.join(held)} has it)" if held else ""


def _grouped(seen: ClusterObservation, judge: Callable[[NodeHost], Iterable[str | Unread]], fine: str) -> Finding:
    """Every node's host, judged; nodes of which the same is to be said stand together."""
    features = needed(seen.features)
    wrong: dict[str, list[str]] = {}
    unread: dict[str, list[str]] = {}
    for node_id, host in features.hosts.items():
        for each in (host,) if isinstance(host, Unread) else judge(host):
            said, held = (each.reason, unread) if isinstance(each, Unread) else (each, wrong)
            held.setdefault(said, []).append(features.who(node_id))
    return settle(_lines(wrong), _lines(unread), fine)


def _lines(said: Mapping[str, list[str]]) -> list[str]:
    return [f"{some(who, SAMPLE)}: {text}" for text, who in said.items()]
