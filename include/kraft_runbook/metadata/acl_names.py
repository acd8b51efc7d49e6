"""The codes of Kafka's enums in ACLs (``ResourceType``, ``PatternType``, ``AclPermissionType``, ``AclOperation``); 0
and 1, UNKNOWN and ANY, stand in no ACL.
"""

from __future__ import annotations

from collections.abc import Mapping

RESOURCE_TYPES: Mapping[int, str] = {
    2: "TOPIC",
    3: "GROUP",
    4: "CLUSTER",
    5: "TRANSACTIONAL_ID",
    6: "DELEGATION_TOKEN",
    7: "USER",
}
PATTERN_TYPES: Mapping[int, str] = {3: "LITERAL", 4: "PREFIXED"}
PERMISSIONS: Mapping[int, str] = {2: "DENY", 3: "ALLOW"}
OPERATIONS: Mapping[int, str] = {
    2: "ALL",
    3: "READ",
    4: "WRITE",
    5: "CREATE",
    6: "DELETE",
    7: "ALTER",
    8: "DESCRIBE",
    9: "CLUSTER_ACTION",
    10: "DESCRIBE_CONFIGS",
    11: "ALTER_CONFIGS",
    12: "IDEMPOTENT_WRITE",
    13: "CREATE_TOKENS",
    14: "DESCRIBE_TOKENS",
}
