"""``python -m penstock.scripts.dev.lint_reference > docs/lint.md``: the page of all the lint rules; a test compares the two."""

from __future__ import annotations

from types import ModuleType

from penstock.sizing.lint import jobs, manifests, node_pools, pod_shape, pods, spark_conf, versions
from penstock.sizing.lint.rule import Rule, rules_of

_KINDS: dict[str, ModuleType] = {
    "NodePools": node_pools,
    "Pod placement": pods,
    "Manifests": manifests,
    "Spark settings": spark_conf,
    "Job specs": jobs,
    "Slots, cores and heap": pod_shape,
    "Versions": versions,
}
_HEAD = """\
# Lint

<!-- Written by `python -m penstock.scripts.dev.lint_reference > docs/lint.md`; a test fails where it is out of date. -->

Catches valid but risky configuration before the rollout, without access to a cluster or AWS.

```sh
penstock lint jobs/specs/user_credit.yaml                 # a job, with the pools and versions of production
penstock lint jobs/specs/*.yaml --environment prod.yaml   # jobs in an environment of yours
penstock lint --manifest karpenter.yaml app.yaml          # manifests that you have already
penstock lint --rules                                     # this table
```

- An **error** fails or does harm, a **warning** works but causes problems, an **info** is for information. The exit code is 1 with an error
  among the findings, with `--strict` also with a warning, otherwise 0; 2 for a document that cannot be read.
- `--ignore LINT-036` skips a rule and may be repeated. `--today 2026-12-01` sets the date for end-of-support checks.
- `-o json` and `-o yaml` print `{schemaVersion, today, counts, findings: [{rule, severity, title, file, line, column, path, given, need,
  fix, why}]}`.
- `--manifest` reads NodePool, EC2NodeClass, Pod, Deployment, ReplicaSet, StatefulSet, Job, CronJob, PodDisruptionBudget, SparkApplication
  (of Apache's operator and of Kubeflow's); multi-document files and Lists. Other kinds are ignored. Pods of the manifests are
  checked against the NodePools of the manifests or, if there are none, against those of `--environment`.
- Spark settings are checked against those in the jars of Spark 4.3.0.
"""


def rendered() -> str:
    """The page, in Markdown."""
    sections = [line for title, module in _KINDS.items() for line in _section(title, rules_of(module))]
    return "\n".join([_HEAD.rstrip("\n"), *sections]) + "\n"


def _section(title: str, rules: tuple[Rule, ...]) -> list[str]:
    rows = [f"| {rule.id} | {rule.severity} | {_cell(rule.title)} | {_cell(rule.why)} | {_cell(rule.fix)} |" for rule in rules]
    sources = [f"- {rule.id}: {rule.source.removeprefix('Source: ')}" for rule in rules]
    table = ["| rule | severity | what | why | fix |", "|---|---|---|---|---|", *rows]
    return ["", f"## {title}", "", *table, "", "Sources:", "", *sources]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    print(rendered(), end="")
