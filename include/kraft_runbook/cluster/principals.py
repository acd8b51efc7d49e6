"""By which names Kafka knows a caller: of its certificate, or of its login. Pure.

``ssl.principal.mapping.rules`` as Kafka 3.9's ``SslPrincipalMapper`` applies them: the first rule whose pattern matches
the whole distinguished name decides, and is then applied by Java's ``String.replaceAll``, to each place where the
pattern is found. So ``RULE:.*/kafka/`` makes ``kafkakafka``: ``.*`` is found once more, empty, at the end.
"""

from __future__ import annotations

import re

_RULE = re.compile(r"\s*(?:(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)|)\s*(?:,|$)")
_JAVA_SET = re.compile(r"&&|\[[^]]*\[")
"""Sets within sets, and what two have in common: other characters to Java than to Python."""
_REFERENCE = re.compile(r"\$([0-9]+)")
_PART = re.compile(rf"\\(.)|{_REFERENCE.pattern}|[\\$]", re.DOTALL)
_USER = re.compile(r"""\busername\s*=\s*("[^"\\$]*"|'[^'\\$]*'|[^\s;"'=$]+)""")


def of_certificate(subject: str, rules: str) -> str | None:
    """The principal of a certificate's subject; None where the rules can't be followed here, or none matches."""
    parsed, at, text = [], 0, rules.strip()
    while at < len(text):
        rule = _RULE.match(text, at)
        if rule is None:
            return None
        parsed.append(rule)
        at = rule.end()
    try:
        for default, pattern, replacement, case in (rule.groups() for rule in parsed):
            if default:
                return f"User:{subject}"
            if pattern is None:  # Kafka passes over an empty one
                continue
            if _JAVA_SET.search(pattern):
                return None
            compiled = re.compile(pattern, re.ASCII)
            if compiled.fullmatch(subject):
                name = _replaced(compiled, _with_literals(replacement, compiled.groups), subject)
                return f"User:{name.lower() if case == 'L' else name.upper() if case == 'U' else name}"
    except (re.error, ValueError, IndexError):
        return None
    return None


def _with_literals(replacement: str, groups: int) -> str:
    """As Kafka prepares it (``escapeLiteralBackReferences``): of a group that the pattern has not, ``$4`` is a text.
    Like Kafka's, this is right for the first such reference alone.
    """
    found = replacement
    for reference in _REFERENCE.finditer(replacement) if groups else ():
        group = int(reference[1])
        while group > groups and group >= 10:
            group //= 10
        if group > groups and not reference[1].startswith("0"):
            found = f"{found[: reference.start()]}\\{found[reference.start() :]}"
    return found


def _replaced(pattern: re.Pattern[str], replacement: str, subject: str) -> str:
    """Java's ``replaceAll``. Raises ValueError or IndexError where Java refuses the replacement."""
    name, last, at = "", 0, 0
    while at <= len(subject) and (found := pattern.search(subject, at)):
        name += subject[last : found.start()] + _expanded(replacement, found)
        last = found.end()
        at = last + (found.start() == last)
    return name + subject[last:]


def _expanded(replacement: str, found: re.Match[str]) -> str:
    """``$n`` takes as many digits as still name a group; what follows a backslash is itself."""

    def one(part: re.Match[str]) -> str:
        literal, digits = part.groups()
        if literal is not None:
            return literal
        if digits is None:
            raise ValueError(replacement)
        taken = max((n for n in range(1, len(digits) + 1) if int(digits[:n]) <= found.re.groups), default=1)
        return (found[int(digits[:taken])] or "") + digits[taken:]

    return _PART.sub(one, replacement)


def of_login(line: str) -> str | None:
    """The principal of a ``sasl.jaas.config`` that names its user openly; None where it does not."""
    found = _USER.search(line)
    return f"User:{found.group(1).strip(chr(34) + chr(39))}" if found else None
