"""The objects of a job's driver; what controllers and the kubelet would do, the tests do."""

from __future__ import annotations

import uuid

from tests.kube.objects import Object, Objects

POD = {"containers": [{"name": "driver", "image": "none"}], "terminationGracePeriodSeconds": 1}


class Job:
    """A job in a namespace of its own, with the objects that stopping and resuming touch."""

    def __init__(self, objects: Objects) -> None:
        self.name = f"j{uuid.uuid4().hex[:6]}"
        self._objects = objects
        namespace = self._namespace = f"job-{self.name}"
        labels = {"app.kubernetes.io/part-of": "penstock", "penstock.dev/job": self.name, "spark-role": "driver"}
        meta = {"name": f"{self.name}-driver", "namespace": namespace, "labels": labels}
        template = {"metadata": {"labels": labels}, "spec": POD}
        spec = {"replicas": 1, "serviceName": meta["name"], "selector": {"matchLabels": labels}, "template": template}
        self.driver: Object = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": meta, "spec": spec}
        self.pod: Object = {"apiVersion": "v1", "kind": "Pod", "metadata": {**meta, "name": f"{self.name}-driver-0"}, "spec": POD}
        objects.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        objects.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": namespace}})
        objects.apply(self.driver)
        objects.apply(self.pod)

    def replicas(self) -> int:
        """As the API has them."""
        return int(self._objects.get(self.driver)["spec"]["replicas"])

    def pods(self) -> list[str]:
        """Names of the pods."""
        return [one["metadata"]["name"] for one in self._objects.list("v1", "Pod", self._namespace)]

    def ready(self, count: int) -> None:
        """What the StatefulSet's controller says once the pod is ready."""
        generation = self._objects.get(self.driver)["metadata"]["generation"]
        self._objects.set_status(self.driver, {"replicas": 1, "readyReplicas": count, "observedGeneration": generation})

    def stop(self) -> None:
        """What `penstock stop` leaves."""
        self._objects.apply({**self.driver, "spec": {**self.driver["spec"], "replicas": 0}})

    def crash(self) -> None:
        """What the kubelet says of a container that ends again and again."""
        waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}}
        container = {"name": "driver", "image": "none", "imageID": "none", "ready": False, "restartCount": 4, "state": waiting}
        self._objects.set_status(self.pod, {"phase": "Running", "containerStatuses": [container]})
