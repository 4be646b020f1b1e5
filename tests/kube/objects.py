"""A Kubernetes API as the tests use it: objects as dicts, applied as `kubectl apply --server-side` does."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from kubernetes.client import ApiClient
from kubernetes.client.exceptions import ApiException

Object = dict[str, Any]
MANAGER = "penstock-tests"


class Refused(Exception):
    """The API said no.

    Args:
        status: the HTTP status.
        message: its words.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message


class Objects:
    """The objects of one API, for one user.

    Args:
        client: connected as that user.
    """

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._kinds: dict[tuple[str, str], tuple[str, bool]] = {}

    def apply(self, manifest: Mapping[str, Any], *, dry_run: bool = False) -> Object:
        """Applies a manifest on the server's side; a field that the API does not know is refused.

        Raises:
            Refused: with the API's words.
        """
        query = [("fieldManager", MANAGER), ("fieldValidation", "Strict"), ("force", "true"), *_dry_run(dry_run)]
        return self._call("PATCH", self.path(manifest), query, manifest, "application/apply-patch+yaml")

    def create(self, manifest: Mapping[str, Any], *, dry_run: bool = False) -> Object:
        """Creates an object. Raises as `apply`."""
        query = [("fieldManager", MANAGER), ("fieldValidation", "Strict"), *_dry_run(dry_run)]
        return self._call("POST", self.path(manifest, named=False), query, manifest)

    def get(self, manifest: Mapping[str, Any]) -> Object:
        """The object as the API has it now. Raises as `apply`."""
        return self._call("GET", self.path(manifest))

    def set_status(self, manifest: Mapping[str, Any], status: Mapping[str, Any]) -> Object:
        """Does what a controller would: says the state of an object. Raises as `apply`."""
        return self._call("PATCH", f"{self.path(manifest)}/status", body={"status": status}, content_type="application/merge-patch+json")

    def replace(self, path: str, body: Mapping[str, Any]) -> Object:
        """Replaces what is at a path, as a scale. Raises as `apply`."""
        return self._call("PUT", path, body=body)

    def delete(self, manifest: Mapping[str, Any], *, grace_s: int = 0) -> None:
        """Deletes an object. Raises as `apply`."""
        self._call("DELETE", self.path(manifest), [("gracePeriodSeconds", str(grace_s))])

    def list(self, api_version: str, kind: str, namespace: str, selector: str = "") -> Sequence[Object]:
        """The objects of a kind in a namespace, by name."""
        template = {"apiVersion": api_version, "kind": kind, "metadata": {"namespace": namespace}}
        objects: Sequence[Object] = self._call("GET", self.path(template, named=False), [("labelSelector", selector)])["items"]
        return sorted(objects, key=lambda one: str(one["metadata"]["name"]))

    def wait_for(self, resource: Object, selector: str, until: Callable[[Sequence[Object]], bool], limit_s: int = 120) -> Sequence[Object]:
        """Watches a list until what is in it is as it shall be.

        Args:
            resource: one of the list's kind and namespace.
            selector: the labels of those that are looked at.
            until: says whether they are as they shall be.
            limit_s: for how long, in seconds.

        Returns:
            Them, by name.
        """
        path = self.path(resource, named=False)
        listed = self._call("GET", path, [("labelSelector", selector)])
        result = {one["metadata"]["name"]: one for one in listed["items"]}
        start = listed["metadata"]["resourceVersion"]
        if not until(list(result.values())):
            query = [("labelSelector", selector), ("watch", "true"), ("resourceVersion", start), ("timeoutSeconds", str(limit_s))]
            for event in self._events(path, query):
                result.pop(event["object"]["metadata"]["name"], None)
                if event["type"] != "DELETED":
                    result[event["object"]["metadata"]["name"]] = event["object"]
                if until(list(result.values())):
                    break
            else:
                raise AssertionError(f"not within {limit_s} s; there are {sorted(result)}")
        return [result[name] for name in sorted(result)]

    def serve(self, crds: Iterable[Mapping[str, Any]], limit_s: int = 120) -> Sequence[Object]:
        """Applies CRDs and waits until the API serves their kinds. It is a while after they are established that it lists them.

        Args:
            crds: of the kinds.
            limit_s: for how long, in seconds.
        """
        applied = [self.apply(crd) for crd in crds]
        names = {crd["metadata"]["name"] for crd in applied}
        self.wait_for(applied[0], "", lambda result: names <= {one["metadata"]["name"] for one in result if _established(one)}, limit_s)
        until_s = time.monotonic() + limit_s
        for crd in applied:
            while not self._is_listed(crd["spec"]):
                assert time.monotonic() < until_s, f"{crd['metadata']['name']} is not served within {limit_s} s"
                time.sleep(0.05)
        return applied

    def _is_listed(self, spec: Mapping[str, Any]) -> bool:
        """Whether each version of a CRD is among the resources of its group."""
        try:
            served = [version["name"] for version in spec["versions"] if version["served"]]
            listed = [self._call("GET", f"/apis/{spec['group']}/{version}")["resources"] for version in served]
        except Refused as error:
            if error.status != 404:
                raise
            return False
        return all(spec["names"]["plural"] in {one["name"] for one in resources} for resources in listed)

    def post(self, path: str, body: Mapping[str, Any]) -> Object:
        """Asks the API something that is no object, as a token or a review. Raises as `apply`."""
        return self._call("POST", path, body=body)

    def read(self, path: str, query: Sequence[tuple[str, str]] = ()) -> Object:
        """What the API says at a path. Raises as `apply`."""
        return self._call("GET", path, query)

    def path(self, manifest: Mapping[str, Any], *, named: bool = True) -> str:
        """Where an object lies in the API, or the list that it is in."""
        plural, namespaced = self._kind(manifest["apiVersion"], manifest["kind"])
        base = _base(manifest["apiVersion"])
        within = f"/namespaces/{manifest['metadata'].get('namespace', 'default')}" if namespaced else ""
        return f"{base}{within}/{plural}" + (f"/{manifest['metadata']['name']}" if named else "")

    def _kind(self, api_version: str, kind: str) -> tuple[str, bool]:
        """A kind's plural, and whether its objects lie in namespaces, as the API itself says."""
        if (api_version, kind) not in self._kinds:
            for resource in self._call("GET", _base(api_version))["resources"]:
                if "/" not in resource["name"]:
                    self._kinds[api_version, resource["kind"]] = (resource["name"], resource["namespaced"])
        if (api_version, kind) not in self._kinds:
            raise Refused(404, f"{api_version} has no {kind}")
        return self._kinds[api_version, kind]

    def _events(self, path: str, query: Sequence[tuple[str, str]]) -> Iterator[Object]:
        """What a watch says, one event a line."""
        with contextlib.closing(
            self._client.call_api(
                path,
                "GET",
                query_params=list(query),
                auth_settings=["BearerToken"],
                _preload_content=False,
                _return_http_data_only=True,
            )
        ) as answer:
            for line in answer:
                yield json.loads(line)

    def _call(
        self,
        method: str,
        path: str,
        query: Sequence[tuple[str, str]] = (),
        body: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
    ) -> Object:
        headers = {"Accept": "application/json", "Content-Type": content_type}
        try:
            data = self._client.call_api(
                path,
                method,
                header_params=headers,
                query_params=list(query),
                body=body,
                response_type="object",
                auth_settings=["BearerToken"],
                _return_http_data_only=True,
                _request_timeout=30,
            )
        except ApiException as error:
            raise Refused(int(error.status or 0), _words(error)) from None
        answer: Object = data
        return answer


def _base(api_version: str) -> str:
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def _dry_run(on: bool) -> list[tuple[str, str]]:
    return [("dryRun", "All")] if on else []


def _words(error: ApiException) -> str:
    try:
        return str(json.loads(error.body)["message"])
    except (TypeError, ValueError, KeyError):
        return str(error.body or error.reason)


def _established(crd: Object) -> bool:
    conditions = crd.get("status", {}).get("conditions") or []
    return any(condition["type"] == "Established" and condition["status"] == "True" for condition in conditions)
