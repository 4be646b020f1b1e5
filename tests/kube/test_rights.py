"""Who may do what, asked of the API's own RBAC."""

from __future__ import annotations

import pytest

from tests.kube.charts import Release
from tests.kube.objects import Objects

DRIVER = "system:serviceaccount:job-user-credit:user-credit-driver"
EXECUTOR = "system:serviceaccount:job-user-credit:user-credit-executor"
NAMESPACE = "job-user-credit"


def may(objects: Objects, user: str, verb: str, resource: str, namespace: str = NAMESPACE, group: str = "") -> bool:
    attributes = {"namespace": namespace, "verb": verb, "group": group, "resource": resource}
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{user.split(':')[2]}", "system:authenticated"]
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": user, "groups": groups, "resourceAttributes": attributes},
    }
    allowed: bool = objects.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)["status"]["allowed"]
    return allowed


@pytest.mark.parametrize("verb", ["create", "delete", "deletecollection", "get", "list", "patch", "watch"])
def test_a_driver_may_start_and_end_pods_in_its_own_namespace(released: list[Release], chart_objects: Objects, verb: str) -> None:
    assert may(chart_objects, DRIVER, verb, "pods")


@pytest.mark.parametrize(
    ("verb", "resource"),
    [
        ("get", "secrets"),
        ("create", "pods/exec"),
        ("create", "serviceaccounts/token"),
        ("update", "resourcequotas"),
        ("delete", "networkpolicies"),
        ("create", "rolebindings"),
        ("patch", "statefulsets"),
        ("create", "persistentvolumeclaims"),
    ],
)
def test_a_driver_may_do_nothing_else_there(released: list[Release], chart_objects: Objects, verb: str, resource: str) -> None:
    groups = {"networkpolicies": "networking.k8s.io", "rolebindings": "rbac.authorization.k8s.io", "statefulsets": "apps"}
    assert not may(chart_objects, DRIVER, verb, resource, group=groups.get(resource, ""))


@pytest.mark.parametrize("namespace", ["job-flights", "kube-system", "default", ""])
def test_a_driver_may_do_nothing_elsewhere(released: list[Release], chart_objects: Objects, namespace: str) -> None:
    assert not may(chart_objects, DRIVER, "list", "pods", namespace)
    assert not may(chart_objects, DRIVER, "create", "pods", namespace)


@pytest.mark.parametrize("verb", ["create", "delete", "get", "list", "watch"])
def test_an_executor_may_do_nothing(released: list[Release], chart_objects: Objects, verb: str) -> None:
    assert not may(chart_objects, EXECUTOR, verb, "pods")
