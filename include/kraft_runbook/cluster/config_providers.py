"""References of properties to Kafka's config providers (KIP-297), and the providers that a file declares. Pure.

Kafka asks a provider only if ``config.providers`` names it (``AbstractConfig.resolveConfigVariables``). A reference to
any other one stays as it is written: the text ``${vault:…}`` itself becomes the password.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

FILE_CONFIG_PROVIDER = "org.apache.kafka.common.config.provider.FileConfigProvider"
PROVIDERS = "config.providers"
SECRETS = "secrets"
"""The name of the provider that this tool declares for the host's secrets file."""
SECRETS_PROVIDER = {PROVIDERS: SECRETS, f"{PROVIDERS}.{SECRETS}.class": FILE_CONFIG_PROVIDER}
REFERENCE = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")
"""``ConfigTransformer.DEFAULT_PATTERN``: the provider, the path if there is one, and the key."""
_CLASS = re.compile(r"config\.providers\.([^.]+)\.class")


def providers_asked(properties: Mapping[str, str]) -> dict[str, list[str]]:
    """The providers that values refer to, each with the keys of those values."""
    found: dict[str, list[str]] = {}
    for key, value in properties.items():
        for name in dict.fromkeys(name for name, _, _ in REFERENCE.findall(value)):
            found.setdefault(name, []).append(key)
    return found


def with_providers(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties with ``config.providers``: the one of the secrets file where a value refers to it, and each that
    ``config.providers.<name>.class`` declares.
    """
    declared = [match.group(1) for match in map(_CLASS.fullmatch, properties) if match]
    names = [SECRETS] if SECRETS in providers_asked(properties) else []
    names += sorted({*declared} - {SECRETS})
    if not names:
        return dict(properties)
    given = SECRETS_PROVIDER if SECRETS in names else {}
    return {**properties, **given, PROVIDERS: ",".join(names)}


def undeclared(properties: Mapping[str, str]) -> dict[str, list[str]]:
    """The providers that values refer to and ``config.providers`` does not name, each with the keys of those values."""
    named = {each.strip() for each in properties.get(PROVIDERS, "").split(",")}
    return {name: keys for name, keys in providers_asked(properties).items() if name not in named}
