"""``python -m penstock.infra.pipeline``: writes the pipelines; with ``role``, prints the policies of the role that a pipeline assumes."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from penstock.infra.environment import Environment
from penstock.infra.environment_file import load
from penstock.infra.environment_names import refuse_beginnings
from penstock.infra.pipeline.deploy_role import concourse_trust, github_trust, permissions
from penstock.infra.pipeline.written import files
from penstock.sizing.errors import PenstockError


def main(words: Sequence[str]) -> int:
    """Writes the pipelines, or prints the role.

    Args:
        words: command-line arguments.

    Returns:
        0, or an error's exit code.
    """
    arguments = _parser().parse_args(words)
    if arguments.action is None:
        for path, text in files().items():
            path.write_text(text, encoding="utf-8")
            print(path.name)
        return 0
    try:
        print(_role(load(arguments.environment), arguments))
    except PenstockError as error:
        print(error.render(), file=sys.stderr)
        return error.exit_code
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m penstock.infra.pipeline", description="Writes the pipelines beside their description.")
    role = parser.add_subparsers(dest="action").add_parser("role", help="print the role's trust and permissions as JSON")
    role.add_argument("environment", metavar="ENV", help="that it deploys: a name or a file")
    issuer = role.add_mutually_exclusive_group(required=True)
    issuer.add_argument("--github", metavar="OWNER/REPOSITORY", help="jobs of GitHub Actions in its environment of the same name")
    issuer.add_argument("--concourse", metavar="HOST", help="a job of this Concourse")
    role.add_argument(
        "--subject",
        default="main/penstock//deploy-production",
        metavar="TEXT",
        help="of the tokens of its job: team/pipeline/instance/job (default: main/penstock//deploy-production)",
    )
    role.add_argument("--partition", default="aws", help="of AWS (default: aws)")
    return parser


def _role(environment: Environment, arguments: argparse.Namespace) -> str:
    refuse_beginnings(environment)
    account, partition = environment.spec.account, arguments.partition
    if arguments.github:
        trust = github_trust(account, partition, arguments.github, environment.name)
    else:
        trust = concourse_trust(account, partition, arguments.concourse, arguments.subject)
    return json.dumps({"trust": json.loads(trust), "permissions": json.loads(permissions(environment, partition))}, indent=2)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
