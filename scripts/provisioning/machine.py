"""Prerequisites on this machine: tools with their versions, and what the set-up installs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from penstock.scripts import layout
from penstock.scripts.emulation import localstack_python
from penstock.scripts.errors import MissingTool
from penstock.scripts.provisioning import provider_mirror
from penstock.scripts.provisioning.finding import OK, Finding, missing
from penstock.sizing.errors import PenstockError

# A tool may hang, or be a script that waits for input.
TOOL_LIMIT_S = 20.0
# Same version as the bindings'; a test compares the two.
AWS_PROVIDER_VERSION = "5.100.0"


@dataclass(frozen=True)
class Tool:
    """A tool on this machine.

    Args:
        name: name of its command.
        ask: arguments that make it print its version.
        version: pattern whose group is the version.
        least: lowest suitable version.
        purpose: what it is used for.
        fix: how to get it.
        needed: whether the set-up and the default tests need it.
    """

    name: str
    ask: tuple[str, ...]
    version: str
    least: tuple[int, ...]
    purpose: str
    fix: str
    needed: bool = True


# The minimum versions of required tools are those of scripts/setup; a test compares the two.
TOOLS = (
    Tool(
        "java",
        ("-version",),
        r'version "(\d+(?:\.\d+)*)',
        (17,),
        "required by Spark and the local Kafka broker",
        "apt-get install openjdk-21-jdk-headless; brew install openjdk@21 and set JAVA_HOME",
    ),
    Tool(
        "mvn", ("--version",), r"Apache Maven (\d+(?:\.\d+)*)", (3, 6, 3), "fetches the jars", "apt-get install maven; brew install maven"
    ),
    Tool(
        "node", ("--version",), r"v(\d+(?:\.\d+)*)", (20,), "required by cdktf", "apt-get install nodejs (Debian 13); brew install node@22"
    ),
    Tool("npm", ("--version",), r"^(\d+(?:\.\d+)*)", (9,), "fetches cdktf-cli", "apt-get install npm; it comes with brew's node"),
    Tool(
        "terraform", ("version",), r"Terraform v(\d+(?:\.\d+)*)", (1, 11), "applies the stacks", 'the page "Install Terraform" of HashiCorp'
    ),
    Tool(
        "aws",
        ("--version",),
        r"aws-cli/(\d+(?:\.\d+)*)",
        (1, 24),
        "issues the EKS token for Helm",
        "install the AWS CLI",
        False,
    ),
    Tool("kubectl", ("version", "--client"), r"v(\d+(?:\.\d+)*)", (1, 30), "to look at the cluster yourself", "install kubectl", False),
    Tool("helm", ("version", "--short"), r"v(\d+(?:\.\d+)*)", (3, 8), "to look at releases yourself", "install Helm", False),
    Tool("go", ("version",), r"go(\d+(?:\.\d+)*)", (1, 25), "builds the API server of ./scripts/test --tier kube", "install Go", False),
    Tool(
        "python3.13",
        ("--version",),
        r"Python (\d+(?:\.\d+)*)",
        (3, 13),
        "runs LocalStack: ./scripts/test --tier localstack",
        "install Python 3.13",
        False,
    ),
    Tool("docker", ("--version",), r"version (\d+(?:\.\d+)*)", (20,), "builds the jobs' image", "install Docker or Podman", False),
)


def look(environment: Mapping[str, str] | None = None, *, also_needed: Sequence[str] = ()) -> list[Finding]:
    """Check this machine.

    Args:
        environment: environment variables to use; this process's by default.
        also_needed: optional tools that are required here.
    """
    variables = dict(os.environ if environment is None else environment)
    with ThreadPoolExecutor(len(TOOLS)) as pool:
        tools = list(pool.map(lambda tool: _tool(tool, variables, tool.needed or tool.name in also_needed), TOOLS))
    return [_python(), *tools, *_set_up(), _provider(variables)]


def require(name: str, environment: Mapping[str, str] | None = None) -> None:
    """Check that a tool is installed.

    Args:
        name: name of one of `TOOLS`.
        environment: environment variables to use; this process's by default.

    Raises:
        MissingTool: TOOL-001.
    """
    (tool,) = [tool for tool in TOOLS if tool.name == name]
    if _path(name, os.environ if environment is None else environment) is None:
        raise MissingTool(path=name, need=f"{name}, which {tool.purpose}, in PATH", fix=tool.fix)


def _python() -> Finding:
    version = ".".join(str(part) for part in sys.version_info[:3])
    fits = (3, 11) <= sys.version_info[:2] <= (3, 13)
    purpose = "runs this"
    if fits:
        return Finding("python", OK, version, purpose)
    return missing("python", said=version, purpose=purpose, fix="install Python 3.11 to 3.13", needed=True)


def _tool(tool: Tool, variables: Mapping[str, str], needed: bool) -> Finding:
    path = _path(tool.name, variables)
    if path is None:
        return missing(tool.name, said="not in PATH", purpose=tool.purpose, fix=tool.fix, needed=needed)
    said = _said([path, *tool.ask], variables)
    match = re.search(tool.version, said, re.MULTILINE)
    if match is None:
        heard = " ".join(said.split())[:80] or f"nothing within {TOOL_LIMIT_S:g} s"
        return missing(tool.name, said=f"does not report its version: {heard}", purpose=tool.purpose, fix=tool.fix, needed=needed)
    if _numbers(match[1]) < tool.least:
        least = ".".join(str(part) for part in tool.least)
        return missing(tool.name, said=f"{match[1]}, older than {least}", purpose=tool.purpose, fix=tool.fix, needed=needed)
    return Finding(tool.name, OK, match[1], tool.purpose)


def _path(name: str, variables: Mapping[str, str]) -> str | None:
    # JAVA_HOME takes precedence over the PATH, as in Spark and Maven.
    home = variables.get("JAVA_HOME")
    if name == "java" and home:
        return shutil.which(str(Path(home) / "bin" / "java"))
    if name == localstack_python.NAME:
        return localstack_python.find(variables)
    return shutil.which(name, path=variables.get("PATH", os.defpath))


def _said(command: Sequence[str], variables: Mapping[str, str]) -> str:
    try:
        ran = subprocess.run(
            command,
            env=dict(variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=TOOL_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ran.stdout.decode("utf-8", "replace")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _set_up() -> list[Finding]:
    checks: tuple[tuple[str, Callable[[], object], str], ...] = (
        ("Spark's jars", layout.spark_jars, "Kafka source and s3a of local runs"),
        ("Kafka's jars", layout.kafka_classpath, "the local Kafka broker"),
        ("cdktf-cli", layout.cdktf, "cdktf synth, diff, deploy and destroy"),
    )
    return [_checked(name, find, purpose) for name, find, purpose in checks]


def _checked(name: str, find: Callable[[], object], purpose: str) -> Finding:
    try:
        find()
    except PenstockError as error:
        return missing(name, said=f"not at {error.path}", purpose=purpose, fix=error.fix, needed=True)
    return Finding(name, OK, "set up", purpose)


def _provider(variables: Mapping[str, str]) -> Finding:
    name, purpose = "AWS provider", f"Terraform's, {AWS_PROVIDER_VERSION}"
    try:
        search = provider_mirror.find(AWS_PROVIDER_VERSION, variables)
    except PenstockError as error:
        return missing(name, said=f"not in {error.given}", purpose=purpose, fix=error.fix, needed=True)
    if search.folder is not None:
        return Finding(name, OK, f"in {search.folder}", purpose)
    return Finding(name, OK, "from your CLI configuration" if search.configuration is None else "from Terraform's registry", purpose)
