"""Tokens (OAUTHBEARER) on Kafka 4: URLs that the JVM must allow, and releases that look at no signature."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kraft_runbook.cluster.feature_levels import NodeHost
from kraft_runbook.cluster.kafka_version import KafkaVersion, release_of
from kraft_runbook.cluster.node_properties import kraft_properties
from kraft_runbook.cluster.observation import ClusterObservation, Unread
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.runbook.check_results import BLOCKING, Finding, passed
from kraft_runbook.runbook.checklist import Needs
from kraft_runbook.software.checklist import CHECKS, both, each_file, each_host
from kraft_runbook.software.stages import Gate

check = CHECKS.check
ALLOWED_URLS = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
KEYS = "sasl.oauthbearer.jwks.endpoint.url"
OAUTH_URLS = (KEYS, "sasl.oauthbearer.token.endpoint.url")
"""Of all listeners, and of one (``listener.name.….``)."""
VALIDATOR = "sasl.oauthbearer.jwt.validator.class"
BROKERS_VALIDATOR = "org.apache.kafka.common.security.oauthbearer.BrokerJwtValidator"
DEFAULT_VALIDATOR = "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator"
UNSIGNED, LAST_UNSIGNED = "4.1", 1
"""The releases 4.1.0 and 4.1.1, whose default validator of a listener looks at no signature (measured on both, and on
4.0.0, 4.1.2 and 4.2.0, which look).
"""


@check(
    "KRB-UPG-026",
    severity=BLOCKING,
    gates={Gate.UP},
    needs=Needs.HOSTS,
    fix=(
        f"start the named nodes with -D{ALLOWED_URLS}=<the URLs, comma-separated> (KAFKA_OPTS of their services), which"
        " 3.9 takes too, and restart them with it before the roll"
    ),
)
def the_target_may_ask_the_urls_of_oauthbearer(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every URL of OAUTHBEARER in a file that the roll writes is one that the node's process is allowed to ask.

    Kafka 4 asks none that the Java property org.apache.kafka.sasl.oauthbearer.allowed.urls does not list, and a node
    ends at its start. 3.9 asks every one where the property is not set.
    """
    if release_of(both(spec)[-1].version) < (4, 0):
        return passed("the target is no Kafka 4")

    def judge(host: NodeHost) -> Iterator[str | Unread]:
        written = kraft_properties(spec, host.node_id)
        named = {key: url.strip() for key, url in written.items() if key.endswith(OAUTH_URLS) and url.strip()}
        allowed = host.allowed_urls if named else ()
        if isinstance(allowed, Unread):
            yield allowed
            return
        for key, url in named.items():
            if "${" in url:
                yield Unread(f"{key} comes from a config provider")
            elif url not in allowed:
                yield f"{key}={url} is not allowed"

    return each_host(seen, judge, "every one is")


@check(
    "KRB-UPG-027",
    severity=BLOCKING,
    gates={Gate.UP},
    fix=(
        f"take 4.1.2 or a later release as the target; or set {VALIDATOR}={BROKERS_VALIDATOR} in the cluster file"
        " before the roll (listener.name.<listener>.oauthbearer.…), which 3.9 reads over"
    ),
)
def the_target_looks_at_the_signature_of_tokens(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """No node lets everybody in by a token that nobody signed.

    Kafka 4.1.0 and 4.1.1 take any token at a listener that names where the keys are, but no validator: a forged one was
    let in as "admin" (measured on both). Earlier and later releases look at the signature.
    """

    target = KafkaVersion.of(both(spec)[-1].version)

    def judge(written: Mapping[str, str]) -> Iterator[str | Unread]:
        if target.minor != UNSIGNED or (target.patch is not None and target.patch > LAST_UNSIGNED):
            return
        for key in written:
            if _is(key, KEYS) and _validator(written, key) == DEFAULT_VALIDATOR:
                said = f"{key} is set, and no {VALIDATOR}"
                yield (
                    Unread(f"{said}; the number {target.text} does not say which release of Kafka {UNSIGNED} it is")
                    if target.patch is None
                    else f"{said}: any token would be let in"
                )

    return each_file(spec, judge, "none does")


def _is(key: str, name: str) -> bool:
    """Of all listeners, or of one (``listener.name.<listener>.oauthbearer.…``)."""
    return key == name or (key.startswith("listener.name.") and key.endswith(f".{name}"))


def _validator(config: Mapping[str, str], url: str) -> str:
    """The one that counts where this URL does."""
    own = url.removesuffix(KEYS) + VALIDATOR
    return (config.get(own) or config.get(VALIDATOR) or DEFAULT_VALIDATOR).strip()
