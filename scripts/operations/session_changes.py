"""What a deploy changes in sessions: which jobs are added, taken out and changed, and whether the driver restarts with all of them.

Read from the releases that Terraform has planned: what runs is what was released, whatever the files of the environment were then.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from penstock.infra.manifests.client_mode_conf import EXECUTOR_TEMPLATE
from penstock.jobs.configuration.session import SESSION, SessionConfiguration
from penstock.scripts.provisioning.planned_changes import ResourceChange, StackChanges

_RELEASE = "helm_release"
_IMAGE = "spark.kubernetes.container.image"
_OF_EXECUTORS = "spark.executor."
# Those of the pods' sizes are said in terms of pods.
_OF_PODS = ("spark.driver.", "spark.executor.", "spark.kubernetes.")


class SessionChanges(BaseModel):
    """The changes of a session.

    Args:
        session: its name.
        jobs: that it is to have; none if it goes.
        added: those that it does not have yet.
        removed: those that it has, and is not to have.
        changed: those with another spec, app or setting.
        restarts: why the driver restarts, with all its jobs; empty if nothing restarts but what is changed.
        begins: whether it does not run yet.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", alias_generator=to_camel, validate_by_name=True)

    session: str
    jobs: tuple[str, ...]
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    restarts: tuple[str, ...] = ()
    begins: bool = False


def session_changes(planned: Iterable[StackChanges]) -> list[SessionChanges]:
    """The sessions whose releases change, in the order of their names; those whose values Terraform does not know yet are left out.

    Args:
        planned: the changes of the stacks.
    """
    changes = [change for stack in planned for change in stack.changes if change.type == _RELEASE]
    found = [made for change in changes if (made := _of_release(change)) is not None]
    return sorted(found, key=lambda one: one.session)


def rendered(sessions: Iterable[SessionChanges]) -> str:
    """A line for each session."""
    return "".join(f"session {one.session}: {_said(one)}\n" for one in sessions)


def _said(session: SessionChanges) -> str:
    if not session.jobs:
        return f"goes, with {', '.join(session.removed)}"
    if session.begins:
        return f"begins with {', '.join(session.jobs)}"
    jobs = {"adds": session.added, "takes out": session.removed, "changes": session.changed}
    parts = [f"{verb} {', '.join(names)}" for verb, names in jobs.items() if names]
    if session.restarts:
        return "; ".join([*parts, f"the driver restarts, with all its jobs ({', '.join(session.jobs)}): {', '.join(session.restarts)}"])
    return "; ".join([*parts, "no other job restarts" if parts else "nothing restarts"])


def _of_release(change: ResourceChange) -> SessionChanges | None:
    before, after = _Released.of(change.before), _Released.of(change.after)
    known = after or before
    # One that exists, and can't be read, is of another release of Penstock.
    if known is None or (before is None and change.action != "create") or (after is None and change.action != "destroy"):
        return None
    had = {} if before is None else before.configuration.jobs
    has = {} if after is None else after.configuration.jobs
    return SessionChanges(
        session=known.configuration.name,
        jobs=tuple(has),
        added=tuple(job for job in has if job not in had),
        removed=tuple(job for job in had if job not in has),
        changed=tuple(job for job in has if job in had and has[job] != had[job]),
        restarts=() if before is None or after is None else before.restarts(after),
        begins=before is None,
    )


class _Released:
    """What a release has of a session.

    Args:
        configuration: that its driver follows.
        executors: the template of their pods.
        template: of the driver's pod: another one restarts it.
    """

    def __init__(self, configuration: SessionConfiguration, executors: str, template: Mapping[str, Any]) -> None:
        self.configuration = configuration
        self.executors = executors
        self.template = template

    @classmethod
    def of(cls, release: Mapping[str, Any] | None) -> _Released | None:
        """None if it is none of a session, or not known before the apply."""
        manifests = list(_manifests(release))
        files = [one["data"] for one in manifests if one["kind"] == "ConfigMap" and SESSION in one.get("data", {})]
        templates = [one["spec"]["template"] for one in manifests if one["kind"] == "StatefulSet"]
        if not (files and templates):
            return None
        try:
            return cls(SessionConfiguration.model_validate_json(files[0][SESSION]), files[0].get(EXECUTOR_TEMPLATE, ""), templates[0])
        except ValidationError:
            # Of another release of Penstock.
            return None

    def restarts(self, after: _Released) -> tuple[str, ...]:
        """Why the driver restarts; empty if it does not."""
        if self.template == after.template:
            return ()
        (before,), (now,) = (one.template["spec"]["containers"] for one in (self, after))
        grace = "terminationGracePeriodSeconds"
        image = before["image"] != now["image"]
        executors = self.executors != after.executors or self._conf(_OF_EXECUTORS) != after._conf(_OF_EXECUTORS)
        shared = sorted(
            key for key, _ in {*self._conf("spark.").items()} ^ {*after._conf("spark.").items()} if not key.startswith(_OF_PODS)
        )
        differs = {
            "another image": image,
            "another size of the driver": before["resources"] != now["resources"],
            "other executors": executors,
            f"settings that its jobs share: {', '.join(dict.fromkeys(shared))}": bool(shared),
            "another time to stop": self.template["spec"].get(grace) != after.template["spec"].get(grace),
        }
        return tuple(why for why, does in differs.items() if does) or ("another pod of the driver",)

    def _conf(self, begins: str) -> dict[str, str]:
        """The settings whose names begin so; those with the image's name are its own reason."""
        conf = self.configuration.spark_conf
        return {key: value for key, value in conf.items() if key.startswith(begins) and key != _IMAGE}


def _manifests(release: Mapping[str, Any] | None) -> Iterator[dict[str, Any]]:
    for text in (release or {}).get("values") or ():
        if isinstance(text, str):
            yield from json.loads(text).get("manifests", ())
