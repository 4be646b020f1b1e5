"""Penstock's own rules: what the gate checks and the scanner has no rule for."""

from __future__ import annotations

from penstock.scripts.security.finding import Finding

# An id never changes its meaning, because waivers name it.
RULES = {
    "PEN_POLICY_1": "A policy document can be read before the apply",
    "PEN_POLICY_2": "No policy allows everybody",
    "PEN_POLICY_3": "No identity may do everything, or everything in a service, on all resources",
    "PEN_POLICY_4": "No policy allows all but what it lists",
    "PEN_POLICY_5": "A role may pass, assume or change only the roles that it names",
    "PEN_POLICY_6": "A bucket or queue denies requests without TLS",
    "PEN_MSK_1": "MSK accepts only authenticated clients, over TLS only",
    "PEN_PROVIDER_1": "A provider block has no credentials",
    "PEN_NODE_1": "Nodes require IMDSv2 with a hop limit of 1",
    "PEN_NODE_2": "Volumes of nodes are encrypted",
    "PEN_POD_1": "A pod mounts nothing of its host",
    "PEN_POD_2": "A pod template can be read",
    "PEN_HELM_1": "A release is of Penstock's own chart, or waived by name and version",
    "PEN_HELM_2": "A release of Penstock's own chart consists of the manifests that are scanned",
    "PEN_HELM_3": "A stack for Kubernetes has no other resources than releases and the archives of apps",
    "PEN_STACK_1": "A stack has resources of its own only, and no modules",
    "PEN_SKIP_1": "Findings are accepted in the file of waivers only",
}


def finding(rule: str, path: str, detail: str = "") -> Finding:
    """A finding of one of these rules.

    Args:
        rule: its id.
        path: the failing object.
        detail: what was found.
    """
    return Finding(rule=rule, path=path, says=f"{RULES[rule]}: {detail}" if detail else RULES[rule])
