"""The options of a node's JVM, from all places that give it some: its command line, and variables that Java and Kafka's
scripts read.
"""

from __future__ import annotations

from ansible.module_utils.environment_files import words_of

LOGIN_FILE = "java.security.auth.login.config"
BEFORE = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")
"""What Java itself reads before its command line (java(1); the first one: JVM Tool Interface)."""
BY_THE_SCRIPT = (
    "KAFKA_HEAP_OPTS",
    "KAFKA_JVM_PERFORMANCE_OPTS",
    "KAFKA_GC_LOG_OPTS",
    "KAFKA_JMX_OPTS",
    "KAFKA_LOG4J_OPTS",
    "KAFKA_OPTS",
)
"""What ``kafka-run-class.sh`` makes the command line of, in its order."""
AFTER = ("_JAVA_OPTIONS",)
"""What HotSpot reads behind the command line."""


def options(environment: dict, command_line: list | None = None) -> list:
    """All options in the order in which they count: of two with one name the later. ``environment``: of the process, or
    what a unit sets for it; ``command_line``: the process's own options, None where none runs.
    """

    def given(names: tuple) -> list:
        return [word for name in names for word in words_of(environment.get(name, ""))]

    return [*given(BEFORE), *(given(BY_THE_SCRIPT) if command_line is None else command_line), *given(AFTER)]


def beside_the_command_line(environment: dict) -> list:
    """The options that Java itself takes from variables: no command line shows them."""
    return options(environment, [])


def java_property(given: list, name: str) -> str | None:
    """A Java property that options set; None where none does."""
    return next((each.partition("=")[2] for each in reversed(given) if each.startswith(f"-D{name}=")), None)


def login_file(given: list) -> str:
    """The path of the login file (JAAS) that options name, as a URL or behind a second ``=`` too; empty: none."""
    path = (java_property(given, LOGIN_FILE) or "").lstrip("=")
    return path[len("file:") :] if path.startswith("file:") else path
