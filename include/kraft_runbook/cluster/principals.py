"""By which names Kafka knows a caller: of its certificate, or of its login. Pure.

``ssl.principal.mapping.rules`` as Kafka 3.9's ``SslPrincipalMapper`` applies them: the first rule whose pattern matches
the whole distinguished name decides; without one the name stays as it is.
"""

from __future__ import annotations

import re

_RULE = re.compile(r"\s*(?:(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?))\s*(?:,|$)")
_USER = re.compile(r"""\busername\s*=\s*("[^"\\$]*"|'[^'\\$]*'|[^\s;"'=$]+)""")


def of_certificate(subject: str, rules: str) -> str | None:
    """The principal of a certificate's subject; None where the rules can't be followed here, or none matches."""
    at, text = 0, rules.strip() or "DEFAULT"
    while at < len(text):
        rule = _RULE.match(text, at)
        if rule is None:
            return None
        at = rule.end()
        if rule.group(1):
            return f"User:{subject}"
        try:
            found = re.fullmatch(rule.group(2), subject)
            if found is None:
                continue
            name = found.expand(re.sub(r"\$(\d)", r"\\\1", rule.group(3)))
        except (re.error, IndexError):
            return None
        return f"User:{name.lower() if rule.group(4) == 'L' else name.upper() if rule.group(4) == 'U' else name}"
    return None


def of_login(line: str) -> str | None:
    """The principal of a ``sasl.jaas.config`` that names its user openly; None where it does not."""
    found = _USER.search(line)
    return f"User:{found.group(1).strip(chr(34) + chr(39))}" if found else None
