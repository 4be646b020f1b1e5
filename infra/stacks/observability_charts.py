"""The observability-charts stack: Fluent Bit on every node, and Prometheus."""

from __future__ import annotations

from typing import Literal, Protocol

from constructs import Construct

from penstock.infra.constructs.charts_stack import RELEASES_NAMESPACE, ChartsStack, Cluster
from penstock.infra.constructs.local_chart import LocalChart
from penstock.infra.environment import Environment
from penstock.infra.errors import DaemonSetNotSized
from penstock.infra.image_lock import pinned
from penstock.infra.manifests.deployed_job import driver_address
from penstock.infra.manifests.fluent_bit import DAEMON_SET, Logging, Search, fluent_bit
from penstock.infra.manifests.fluent_bit import IMAGE as FLUENT_BIT_IMAGE
from penstock.infra.manifests.pod import tolerations
from penstock.infra.manifests.prometheus import IMAGE as PROMETHEUS_IMAGE
from penstock.infra.manifests.prometheus import Monitoring, prometheus
from penstock.infra.manifests.scraped_job import ScrapedJob
from penstock.infra.node_alarms import pending_minutes
from penstock.infra.parts.nodes import DaemonSetRequest
from penstock.infra.plans import EnvironmentPlans, SessionOfJobs
from penstock.infra.system_pods import system_pods

STACK = "observability-charts"


class Observability(Protocol):
    """The outputs of the observability stack that this stack uses."""

    @property
    def log_group(self) -> str:
        """Prefix of the names of the jobs' log groups."""

    @property
    def karpenter_log_group(self) -> str | None:
        """Karpenter's log group; None: the cluster has a Karpenter."""

    @property
    def open_search_endpoint(self) -> str | None:
        """Host of the log search."""

    @property
    def prometheus_endpoint(self) -> str | None:
        """URL of the workspace that Prometheus writes to."""


class ObservabilityChartsStack(ChartsStack):
    """Two releases of the local chart.

    Args:
        scope: the app.
        environment: the environment of the stack, with a cluster.
        plans: of its jobs.
        cluster: target of the releases.
        observability: its AWS resources.

    Raises:
        PenstockError: INF-061 and INF-062.
    """

    def __init__(
        self, scope: Construct, environment: Environment, plans: EnvironmentPlans, cluster: Cluster, observability: Observability
    ) -> None:
        super().__init__(scope, STACK, environment, cluster)
        self._chart("fluent-bit", fluent_bit(_logging(environment, plans, observability)))
        if environment.spec.observability.prometheus != "none":
            self._chart("prometheus", prometheus(_monitoring(environment, plans, observability)))

    def _chart(self, name: str, manifests: list[dict[str, object]]) -> None:
        LocalChart(self, name, name=self.environment.release(name), namespace=RELEASES_NAMESPACE, manifests=manifests)


def _logging(environment: Environment, plans: EnvironmentPlans, observability: Observability) -> Logging:
    return Logging(
        environment=environment.name,
        region=environment.spec.region,
        jobs=tuple(plans.workloads),
        sessions=tuple(session.name for session in plans.sessions),
        log_group=observability.log_group,
        karpenter_log_group=observability.karpenter_log_group,
        search=_search(environment, observability),
        request=_request(environment),
        image=pinned(FLUENT_BIT_IMAGE, environment.spec.mirrors),
    )


def _search(environment: Environment, observability: Observability) -> Search | None:
    """The destination of requests, and whether they are signed: they are if the domain is AWS's."""
    asked = environment.spec.observability.open_search
    if asked is None or observability.open_search_endpoint is None:
        return None
    if asked.endpoint is None:
        return Search(observability.open_search_endpoint)
    host, _, port = asked.endpoint.removeprefix("https://").rstrip("/").partition(":")
    return Search(host, int(port or 443), signed=asked.domain_arn is not None)


def _request(environment: Environment) -> DaemonSetRequest:
    sized = environment.spec.nodes.daemon_sets if environment.spec.nodes is not None else []
    daemon_set = next((one for one in sized if one.name == DAEMON_SET), None)
    if daemon_set is None:
        need = f"{DAEMON_SET} in nodes.daemonSets: it runs on every node and must be part of every node's sizing"
        fix = f"- {{name: {DAEMON_SET}, cpu: 100m, memory: 128Mi}}"
        raise DaemonSetNotSized(path="nodes.daemonSets", given=", ".join(one.name for one in sized) or "none", need=need, fix=fix)
    return daemon_set


def _monitoring(environment: Environment, plans: EnvironmentPlans, observability: Observability) -> Monitoring:
    assert environment.spec.nodes is not None, "an environment with a cluster has them"
    alarms = environment.spec.observability.alarms
    system = system_pods(environment)
    return Monitoring(
        environment=environment.name,
        region=environment.spec.region,
        jobs=(
            *(_scraped(job.name, job.spec.job.spec.trigger) for job in plans.apart),
            *(_scraped_session(plans, session) for session in plans.sessions),
        ),
        alarms=alarms,
        pending_minutes=pending_minutes(alarms, environment.spec.nodes),
        workspace=observability.prometheus_endpoint,
        node_selector=system.node_selector,
        tolerations=tolerations(system.tolerations),
        karpenter=environment.own_karpenter,
        image=pinned(PROMETHEUS_IMAGE, environment.spec.mirrors),
    )


def _scraped(name: str, trigger: int | Literal["availableNow"]) -> ScrapedJob:
    bounded = trigger == "availableNow"
    return ScrapedJob(name, driver_address(name), bounded, 0 if trigger == "availableNow" else trigger)


def _scraped_session(plans: EnvironmentPlans, session: SessionOfJobs) -> ScrapedJob:
    triggers = [job.spec.job.spec.trigger for job in plans.jobs_of(session)]
    longest_ms = max((trigger for trigger in triggers if trigger != "availableNow"), default=0)
    return ScrapedJob(session.name, driver_address(session.name), False, longest_ms, session.plan.jobs)
