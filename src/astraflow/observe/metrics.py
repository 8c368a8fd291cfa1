"""Numbers for operators. Counted as plain integers on the hot path, turned into samples when somebody asks.

1. Updating one is a dictionary look-up and an addition: no lock, no label object. Use from one thread.
2. Names of the older documents are kept to the letter; what is ours begins with `astraflow_`.
3. Labels that users can make up (node types, workers) are bounded: past `MAX_SERIES` a new one counts as `other`, so
   that a hostile workflow cannot fill the memory.
4. A reader sees the samples of its own tenant and those that belong to none (P15), unless it collects for the site.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from prometheus_client import Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.registry import Collector, CollectorRegistry

MAX_SERIES: Final = 1_000
"""Label sets of one metric; a scrape of all stays well below a megabyte."""

_OTHER: Final = "other"
_LATENCY_MS: Final = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 10_000, 60_000, 600_000)
_SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 2.5)
_WAITS: Final = (0.01, 0.1, 1.0, 5.0, 30.0, 120.0, 600.0, 3_600.0)
_SIZES: Final = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 5_000)

Labels = tuple[str, ...]


class _Series:
    """What all kinds share: a name, labels, and a bound on how many label sets there are."""

    __slots__ = ("help", "labels", "name")

    def __init__(self, name: str, help: str, labels: Labels) -> None:
        self.name = name
        self.help = help
        self.labels = labels

    def _room(self, known: Mapping[Labels, object], key: Labels) -> Labels:
        """The key itself if it is known or may be new, else the one for all others of its tenant."""
        assert len(key) == len(self.labels), f"{self.name} has the labels {self.labels}"
        if key in known or len(known) < MAX_SERIES:
            return key
        return tuple(
            value if label == "tenant" else _OTHER
            for label, value in zip(self.labels, key, strict=True)
        )


class Counter(_Series):
    """Only grows."""

    __slots__ = ("_values",)

    def __init__(
        self, name: str, help: str, labels: Labels = (), known: Iterable[str] = ()
    ) -> None:
        """`known`: the values of the one label, which are 0 from the start: a rate needs a first sample."""
        super().__init__(name, help, labels)
        self._values = _at_zero(labels, known)

    def add(self, *key: str, by: float = 1) -> None:
        values = self._values
        if key in values:
            values[key] += by
        else:
            key = self._room(values, key)
            values[key] = values.get(key, 0) + by

    def value(self, *key: str) -> float:
        return self._values.get(key, 0)

    def family(self) -> Metric:
        family = CounterMetricFamily(self.name, self.help, labels=self.labels)
        for key, value in self._values.items():
            family.add_metric(key, value)
        return family


def _at_zero(labels: Labels, known: Iterable[str]) -> dict[Labels, float]:
    """What is said before anything has happened."""
    return {(value,): 0 for value in known} if labels else {(): 0}


class Gauge(_Series):
    """Goes up and down. One that is read from where it is kept (`follow`) costs nothing until a scrape."""

    __slots__ = ("_sources", "_values")

    def __init__(
        self, name: str, help: str, labels: Labels = (), known: Iterable[str] = ()
    ) -> None:
        """`known`: the values of the one label, which are 0 until something else is said or followed."""
        super().__init__(name, help, labels)
        self._values: dict[Labels, float] = _at_zero(labels, known)
        self._sources: list[Callable[[], Mapping[Labels, float]]] = []

    def set(self, *key: str, to: float) -> None:
        self._values[self._room(self._values, key)] = to

    def add(self, *key: str, by: float = 1) -> None:
        key = self._room(self._values, key)
        self._values[key] = self._values.get(key, 0) + by

    def follow(self, read: Callable[[], Mapping[Labels, float]]) -> None:
        """Ask this at every scrape instead of keeping values; the values of several are added up."""
        self._sources.append(read)

    def _current(self) -> Mapping[Labels, float]:
        if not self._sources:
            return self._values
        if len(self._sources) == 1:
            return self._sources[0]()
        sums: dict[Labels, float] = {}
        for read in self._sources:
            for key, value in read().items():
                sums[key] = sums.get(key, 0) + value
        return sums

    def value(self, *key: str) -> float:
        return self._present().get(key, 0)

    def _present(self) -> Mapping[Labels, float]:
        """The values now; what is read past the bound is added up."""
        values = self._current()
        if not self._sources or len(values) <= MAX_SERIES:
            return values
        bounded: dict[Labels, float] = {}
        for key, value in values.items():
            key = self._room(bounded, key)
            bounded[key] = bounded.get(key, 0) + value
        return bounded

    def family(self) -> Metric:
        family = GaugeMetricFamily(self.name, self.help, labels=self.labels)
        for key, value in self._present().items():
            family.add_metric(key, value)
        return family


class Histogram(_Series):
    """How often a measured value fell under each bound."""

    __slots__ = ("_bounds", "_counts", "_sums")

    def __init__(
        self, name: str, help: str, bounds: tuple[float, ...], labels: Labels = ()
    ) -> None:
        super().__init__(name, help, labels)
        self._bounds = bounds
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}

    def observe(self, value: float, *key: str) -> None:
        self.observe_all((value,), *key)

    def observe_all(self, values: Sequence[float], *key: str) -> None:
        counts = self._counts.get(key)
        if counts is None:
            key = self._room(self._counts, key)
            counts = self._counts.setdefault(key, [0] * (len(self._bounds) + 1))
        for value in values:
            counts[bisect_left(self._bounds, value)] += 1
        self._sums[key] = self._sums.get(key, 0) + sum(values)

    def count(self, *key: str) -> int:
        return sum(self._counts.get(key, ()))

    def family(self) -> Metric:
        family = HistogramMetricFamily(self.name, self.help, labels=self.labels)
        for key, counts in self._counts.items():
            total = 0
            buckets: list[tuple[str, float]] = []
            for bound, count in zip([*map(str, self._bounds), "+Inf"], counts, strict=True):
                total += count
                buckets.append((bound, total))
            family.add_metric(key, buckets, self._sums[key])
        return family


_Any = Counter | Gauge | Histogram


class _Scraped(Collector):
    """The samples that one reader may see."""

    def __init__(self, series: Iterable[_Any], tenant: str | None) -> None:
        self._series = series
        self._tenant = tenant

    def collect(self) -> Iterator[Metric]:
        for one in self._series:
            family = one.family()
            if self._tenant is not None and "tenant" in one.labels:
                family.samples = [
                    sample
                    for sample in family.samples
                    if sample.labels.get("tenant") == self._tenant
                ]
            yield family


def _text(series: Iterable[_Any], tenant: str | None) -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Scraped(series, tenant))
    return generate_latest(registry)


class Metrics:
    """Everything that a scheduler counts."""

    def __init__(self) -> None:
        tenant = ("tenant",)
        self.connections = Gauge("ws_conn_active", "open worker connections", tenant)
        self.frame_bytes = Counter(
            "ws_frame_bytes_total", "bytes of frames, by direction (in, out)", ("tenant", "dir")
        )
        self.heartbeats_missed = Counter(
            "ws_heartbeat_miss_total", "heartbeats that did not come", ("tenant", "worker")
        )
        self.input_failures = Counter(
            "astraflow_input_failures_total",
            "sessions and engines that were given up because handling an input failed",
            ("kind",),
            known=("session", "engine"),
        )
        self.dispatches = Counter(
            "cmd_dispatch_total", "attempts sent to workers", ("tenant", "node_type")
        )
        self.retries = Counter(
            "cmd_retry_total", "attempts to be tried again", ("reason",),
            known=("failed", "lost", "refused"),
        )  # fmt: skip
        self.result_latency = Histogram(
            "result_latency_ms", "dispatch to result", _LATENCY_MS, ("tenant", "node_type")
        )
        self.package_operations = Counter(
            "pkg_ops_total",
            "ended package operations: op install or uninstall, status succeeded or failed",
            ("tenant", "op", "status"),
        )
        self.runs_accepted = Counter("astraflow_runs_accepted_total", "runs accepted", tenant)
        self.runs_finished = Counter(
            "astraflow_runs_finished_total", "runs ended, by status", ("tenant", "status")
        )
        self.loop_lag = Histogram(
            "astraflow_engine_loop_lag_seconds", "how late the engine's loop turns", _SECONDS
        )
        self.commit_seconds = Histogram("astraflow_commit_seconds", "time of one commit", _SECONDS)
        self.batch_facts = Histogram("astraflow_batch_facts", "facts in one commit", _SIZES)
        bundle = ("tenant", "package")
        self.queue_depth = Gauge("astraflow_queue_depth", "tasks that wait for a place", bundle)
        self.slots_free = Gauge(
            "astraflow_slots_free", "free slots of workers that could take a task of the package",
            bundle,
        )  # fmt: skip
        self.active_tasks = Gauge("astraflow_active_tasks", "tasks of runs that have not ended")
        self.task_wait = Histogram(
            "astraflow_task_wait_seconds", "ready to leased, by what was waited for", _WAITS,
            ("reason",),
        )  # fmt: skip
        self.ready = Gauge("astraflow_ready", "1 if this scheduler serves, 0 if it does not")
        self.sessions = Gauge("astraflow_sessions", "sessions of workers", tenant)
        self.workers = Gauge(
            "astraflow_workers", "workers that are or were connected, by status",
            ("tenant", "status"),
        )  # fmt: skip
        self._count_streams()
        self.requests = Counter(
            "astraflow_http_requests_total", "HTTP requests, by action and status",
            ("action", "status"),
        )  # fmt: skip
        self.hook_deliveries = Counter(
            "astraflow_hook_deliveries_total",
            "requests to webhooks, by outcome (accepted, refused, limited, failed)",
            ("tenant", "outcome"),
        )
        self.store_bytes = Gauge("astraflow_store_bytes", "size of the store")

    def _count_streams(self) -> None:
        tenant = ("tenant",)
        self.sse_readers = Gauge("astraflow_sse_readers", "open event streams", tenant)
        self.sse_dropped = Counter(
            "astraflow_sse_dropped_total", "streams ended because nobody read", tenant
        )
        self.shards_parked = Gauge(
            "astraflow_shards_parked",
            "shards whose work ends schedulers, of the whole site: parked or withheld",
            ("state",),
            ("parked", "withheld"),
        )
        self.node_feeds = Gauge(
            "astraflow_node_feeds",
            "streams of other nodes that follow shards which are served here",
        )
        self.relayed_workers = Gauge(
            "astraflow_relayed_workers",
            "connections of workers that are passed on to other nodes",
        )

    def text(self, tenant: str | None = None) -> bytes:
        """The exposition format. With `tenant`: without the samples of any other tenant."""
        return _text([one for one in vars(self).values() if isinstance(one, _Any)], tenant)


class WorkerMetrics:
    """Everything that a worker counts."""

    def __init__(self) -> None:
        self.inflight = Gauge("inflight_tasks", "attempts that this worker holds")
        self.task_duration = Histogram(
            "task_duration_ms", "how long attempts ran", _LATENCY_MS, ("node_type",)
        )
        self.heartbeats_sent = Counter("heartbeat_sent_total", "heartbeats sent")
        self.heartbeats_degraded = Counter(
            "heartbeat_degraded_total",
            "heartbeats that reported so much memory or disk in use that nothing new is sent",
        )
        self.hosts = Gauge("astraflow_hosts", "package hosts that run")
        self.resource_bytes = Gauge("astraflow_resource_bytes", "bytes held, by kind", ("kind",))
        self.resource_sessions = Gauge("astraflow_resource_sessions", "objects kept in memory")
        self.resource_candidates = Gauge(
            "astraflow_resource_eviction_candidates", "resources that nobody uses"
        )
        self.resource_gc_seconds = Gauge(
            "astraflow_resource_last_gc_seconds", "how long the last cleanup took"
        )

    def text(self) -> bytes:
        return _text([one for one in vars(self).values() if isinstance(one, _Any)], None)
