"""Every metric of every program: its name, its labels and what it tells.

A label takes few values, and none that a tenant or a client can choose: every value is a
time series of its own, in memory here and in Prometheus. `tenant`, a number that the platform
gives, stands with some of the moment only: nothing of it is kept here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
UPDATES = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    program: str
    """which one tells it"""
    doc: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    """upper bounds, of a histogram"""


HTTP_REQUESTS = Metric(
    "servioticy_http_requests_total",
    "counter",
    "api",
    "answers; route is a template, or `unknown`, or `none` for what was refused unread",
    ("method", "route", "status"),
)
HTTP_SECONDS = Metric(
    "servioticy_http_request_seconds",
    "histogram",
    "api",
    "from the whole request to the beginning of its answer",
    ("method", "route"),
    SECONDS,
)
CONNECTIONS = Metric(
    "servioticy_delivery_connections",
    "gauge",
    "delivery",
    "connections that watch a stream, WebSockets and others",
)
BACKLOG_BYTES = Metric(
    "servioticy_delivery_backlog_bytes",
    "gauge",
    "delivery, broker",
    "bytes kept for connections that have not taken them yet",
)
EMITTED_READ = Metric(
    "servioticy_emitted_updates_read_total",
    "counter",
    "delivery, broker",
    "updates read from the topic",
)
OFFERED = Metric(
    "servioticy_updates_pushed_total",
    "counter",
    "delivery, broker",
    "live updates given to connections, once for each",
)
FEEDS = Metric(
    "servioticy_delivery_feeds",
    "gauge",
    "delivery, broker",
    "durable subscriptions that are delivered to",
)
FEEDS_BEHIND = Metric(
    "servioticy_delivery_feeds_behind",
    "gauge",
    "delivery, broker",
    "of those, how many have to read what they could not take live",
)
RESTING = Metric(
    "servioticy_delivery_tenants_resting",
    "gauge",
    "delivery, broker",
    "tenants that are given nothing: their deliveries of the hour are used up",
)
CALLBACKS = Metric(
    "servioticy_callbacks_total",
    "counter",
    "delivery",
    "updates that receivers took by HTTP",
)
CALLBACKS_FAILED = Metric(
    "servioticy_callback_attempts_failed_total",
    "counter",
    "delivery",
    "requests to receivers that came to nothing",
)
ACTUATION_LANES = Metric(
    "servioticy_actuation_lanes",
    "gauge",
    "delivery, broker",
    "devices that are connected and have actuations to get",
)
ACTUATIONS_ASKED = Metric(
    "servioticy_actuations_asked_total",
    "counter",
    "delivery",
    "actuations that outputs of composite streams asked for",
)
CONDITIONS_FAILED = Metric(
    "servioticy_conditions_failed_total",
    "counter",
    "delivery",
    "conditions of actions whose code ended with a fault: they do not hold",
)
BROKER_CLIENTS = Metric(
    "servioticy_broker_clients", "gauge", "broker", "clients that speak MQTT or STOMP"
)
BROKER_PUSHED = Metric(
    "servioticy_broker_messages_pushed_total",
    "counter",
    "broker",
    "messages of subscriptions to topics given to such clients, once for each",
)
BROKER_REFUSED = Metric(
    "servioticy_broker_messages_refused_total",
    "counter",
    "broker",
    "messages of such clients that could not be taken",
)
BROKER_TAKEN = Metric(
    "servioticy_broker_updates_taken_total",
    "counter",
    "broker",
    "updates of such clients that are in the log",
)
BROKER_PASSED_ON = Metric(
    "servioticy_broker_passed_on",
    "gauge",
    "broker",
    "such clients whose durable topics another process of the broker is asked for",
)
BRIDGES = Metric(
    "servioticy_bridge_connections",
    "gauge",
    "broker",
    "connections to the MQTT broker of `bridge_url`, of which each of `bridge_tenants` has one",
)
FUNCTIONS_PROCESSES = Metric(
    "servioticy_functions_processes",
    "gauge",
    "functions",
    "processes that work on atoms of workflows: 0 while nothing waits for anybody",
)
FUNCTIONS_STARTS = Metric(
    "servioticy_functions_starts_total",
    "counter",
    "functions",
    "how often such a process was started",
)
LAG = Metric(
    "servioticy_lag_records",
    "gauge",
    "pipeline",
    "records of the log that are not behind stored progress yet",
    ("partition",),
)
QUERY_STARTS = Metric(
    "servioticy_query_starts_total", "counter", "pipeline", "starts of the Spark query"
)
RECORDS = Metric(
    "servioticy_log_records_total",
    "counter",
    "pipeline",
    "records of the log that stored progress has passed",
    ("partition",),
)
STORED_UPDATES = Metric(
    "servioticy_updates_stored_total",
    "counter",
    "pipeline",
    "updates stored; origin is `received` or `derived`",
    ("origin",),
)
BATCH_UPDATES = Metric(
    "servioticy_batch_updates",
    "histogram",
    "pipeline",
    "received updates of one transaction, where it has any",
    buckets=UPDATES,
)
COMPUTATIONS = Metric(
    "servioticy_computations_total",
    "counter",
    "pipeline",
    "computations by how they ended (docs/glossary.md, verdict)",
    ("verdict",),
)
STAGE_SECONDS = Metric(
    "servioticy_stage_seconds_total",
    "counter",
    "pipeline",
    "time in each stage; stage is `dispatch`, `fetch`, `transform` or `emit`",
    ("stage",),
)
EXPIRED_UPDATES = Metric(
    "servioticy_expired_updates_total",
    "counter",
    "pipeline",
    "updates removed as they were older than they are kept",
)
EXPIRED_BYTES = Metric(
    "servioticy_expired_bytes_total", "counter", "pipeline", "bytes that these updates had"
)
PUT_OFF = Metric(
    "servioticy_put_off_records_total",
    "counter",
    "pipeline",
    "records put off: their tenant was over its share, its scripts are slow or not known yet, "
    "or their component was lent or not loaded",
    ("partition",),
)
PUT_OFF_WAITING = Metric(
    "servioticy_put_off_records_waiting",
    "gauge",
    "pipeline",
    "records put off that wait for their turn",
    ("partition",),
)
TENANT_PUT_OFF = Metric(
    "servioticy_tenant_put_off_records",
    "gauge",
    "pipeline",
    "records of a tenant that are put off now; of each partition five tenants, of those that have "
    "any or are over their share",
    ("partition", "tenant"),
)
TENANT_OVER = Metric(
    "servioticy_tenant_over_share_seconds",
    "gauge",
    "pipeline",
    "by how much of the partition's time the same tenants are over their share now",
    ("partition", "tenant"),
)
SANDBOX_FRAMES = Metric(
    "servioticy_sandbox_frames_total", "counter", "pipeline", "frames run in sandbox processes"
)
SANDBOX_KILLS = Metric(
    "servioticy_sandbox_kills_total",
    "counter",
    "pipeline",
    "sandbox processes ended for what ran in them; kind is `timeout`, `oom`, `crash` or `error`",
    ("kind",),
)
SANDBOX_WORKERS = Metric(
    "servioticy_sandbox_workers",
    "gauge",
    "pipeline",
    "sandbox processes that tenants have now, each one of its own",
)
LOOP_LAG = Metric(
    "servioticy_loop_lag_seconds",
    "histogram",
    "api, delivery, broker",
    "by how much the event loop is late: what whoever it serves waits before anything is begun",
    buckets=SECONDS,
)
MEASUREMENTS = Metric(
    "servioticy_measurements_total",
    "counter",
    "api, delivery, broker, pipeline",
    "measurements of what is woven that were published",
)
MEASUREMENTS_DROPPED = Metric(
    "servioticy_measurements_dropped_total",
    "counter",
    "api, delivery, broker, pipeline",
    "measurements that were dropped, as too many waited or a publisher failed",
)
WOVEN = Metric(
    "servioticy_woven_functions",
    "gauge",
    "api, delivery, broker, pipeline",
    "functions that are woven now, of all processes of the program",
)
STEPS = Metric(
    "servioticy_woven_steps_total",
    "counter",
    "api, delivery, broker, pipeline",
    "measured calls of woven steps, where they are published as metrics; of 200 purposes",
    ("purpose",),
)
STEP_SECONDS = Metric(
    "servioticy_woven_step_seconds_total",
    "counter",
    "api, delivery, broker, pipeline",
    "how long these took together",
    ("purpose",),
)
PROGRAM_UP = Metric(
    "servioticy_program_up", "gauge", "up", "1 while the program is ready, else 0", ("program",)
)
PROGRAM_STARTS = Metric(
    "servioticy_program_starts_total", "counter", "up", "starts of the program", ("program",)
)

PROCESS = Metric(
    "servioticy_process_info",
    "gauge",
    "up, api, delivery, broker, pipeline, functions",
    "1; which program it is, of which release, and of which platform (a hash of "
    "`bootstrap_servers` and `topic_prefix`)",
    ("program", "release", "platform"),
)

METRICS: tuple[Metric, ...] = tuple(
    value for value in list(globals().values()) if isinstance(value, Metric)
)
