"""Which Kafka properties hold secrets, by their names; and which login lines (``sasl.jaas.config``) hold none."""

from __future__ import annotations

import re

SENSITIVE_PROPERTY = re.compile(
    r"(pass(word|wd|phrase)|pwd|secret|credential|\.jaas\.conf(ig)?$|private\.key|keystore\.key$|token\.master\.key$"
    r"|keystore\.certificate\.chain$|truststore\.certificates$|(^|[._\-])(pass|pw|token|license|user\.info)$"
    r"|(api|access|account|shared|encryption|signing)[._\-]?key|connection[._\-]?string)",
    re.IGNORECASE,
)
"""Kafka properties whose value must not be written in a cluster file, shown in a diff, or logged: every one that
Kafka's ConfigDef types PASSWORD, and what plugins call theirs (a provider's token, a reporter's api.key).

The hosts have the same pattern (``playbooks/module_utils/properties_text.py``), since nothing of this package is there;
a test compares the two.
"""
_OF_PROVIDER = re.compile(r"config\.providers\..+?\.param\.")
"""Before the name that a config provider's own parameter has: what its provider is called says nothing of it."""
_SECRET_OF_PROVIDER = re.compile(r"(token|password|secret|key)$", re.IGNORECASE)
_OPEN_OF_PROVIDER = re.compile(r"[._\-](prefix|ttl[._\-]ms|file|path|type|version)$", re.IGNORECASE)
"""A provider's parameters speak of secrets throughout (``secret.ttl.ms``): their last word says what such a one is, and
the pattern above judges the others.
"""
_HARMLESS = (".cipher.algorithm", ".iterations", ".key.length", ".keyfactory.algorithm", ".class", ".class.name")

_SECRET_VALUE = re.compile(
    r"://[^/\s:@,]*:(?!\$\{)[^/\s@,]+@|-----BEGIN [A-Z ]*PRIVATE KEY"
    r"|(?:pass(?:word|wd|phrase)?|pwd|secret|token|credentials?|(?:api|access|account|shared|private)[._\-]?key)"
    r"[\"']?\s*=\s*[\"']?(?!\$\{)[^\s\"';,&]",
    re.IGNORECASE,
)
HIDDEN = "<set>"
"""What the hosts give in place of a secret's value."""


def is_sensitive(property_name: str) -> bool:
    """Whether the value of this Kafka property must never be shown (``sasl.jaas.config``, ``*.password``, ``*.secret``
    …).
    """
    own = _OF_PROVIDER.match(property_name)
    name = property_name[own.end() :] if own else property_name
    if own and (_OPEN_OF_PROVIDER.search(name) or _SECRET_OF_PROVIDER.search(name)):
        return not _OPEN_OF_PROVIDER.search(name)
    return bool(SENSITIVE_PROPERTY.search(name)) and not name.endswith(_HARMLESS)


def looks_secret(value: str) -> bool:
    """Whether a value shows by itself that it holds a secret, whatever its property is called: a URL with a password, a
    private key, ``password=…`` among options. References to a config provider are none.
    """
    return bool(_SECRET_VALUE.search(value))


_VALUE = r"""(?:"[^"\\]*"|'[^'\\]*'|[^\s;"'=]+)"""
_OPTION = re.compile(rf"([A-Za-z_][\w.\-]*)\s*=\s*({_VALUE})")
_LOGIN = re.compile(
    rf"\s*[\w.$]+\s+(?:required|requisite|sufficient|optional)((?:\s+[A-Za-z_][\w.\-]*\s*=\s*{_VALUE})*)\s*;?\s*",
    re.IGNORECASE,
)
"""One login module as Kafka's JaasConfig reads it. A comment or a second module does not match: what is not understood
is taken for a secret.
"""
_OPEN_OPTIONS = frozenset(
    [
        "username",
        "tokenauth",
        "clientid",
        "scope",
        "servicename",
        "principal",
        "keytab",
        "usekeytab",
        "storekey",
        "useticketcache",
        "ticketcache",
        "renewtgt",
        "donotprompt",
        "isinitiator",
        "refreshkrb5config",
        "usefirstpass",
        "tryfirstpass",
        "storepass",
        "clearpass",
        "debug",
    ]
)
"""Options of Kafka's and the JDK's login modules that hold no secret, in lower case. (``user_NAME`` of PlainLoginModule
is a password.)
"""
_REFERENCE = re.compile(r"\$\{[A-Za-z0-9_.\-]+:[^{}]*\}")


def is_open_login(property_name: str, value: str) -> bool:
    """Whether the property is a login line whose every option holds no secret, or refers to a config provider. SCRAM
    servers need just the class.
    """
    login = _LOGIN.fullmatch(value) if property_name.endswith("sasl.jaas.config") else None
    if login is None:
        return False
    return all(
        name.lower() in _OPEN_OPTIONS or _REFERENCE.fullmatch(given.strip("\"'"))
        for name, given in _OPTION.findall(login.group(1))
    )
