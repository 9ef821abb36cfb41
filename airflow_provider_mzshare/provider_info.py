"""What Airflow is told about this package. A literal: discovery reads it before Airflow itself is configured."""

from __future__ import annotations

from typing import Any

_OPERATORS = (
    "operators.backfills",
    "operators.changes",
    "operators.checking",
    "operators.ingestion",
    "operators.maintenance",
    "operators.migrations",
    "operators.push",
    "operators.reading",
    "operators.sources",
    "operators.sql",
    "operators.swapping",
    "operators.tables",
)


def get_provider_info() -> dict[str, Any]:
    return {
        "package-name": "airflow-provider-mzshare",
        "name": "mzshare",
        "description": "Tables from sources: one shared streaming read feeds any number of exact Delta tables.",
        "integrations": [{"integration-name": "mzshare", "tags": ["software"]}],
        "operators": _modules(*_OPERATORS),
        "sensors": _modules("sensors.offsets"),
        "hooks": _modules("hooks.mzshare"),
        "triggers": _modules("triggers.offsets", "triggers.tables"),
        "connection-types": [_CONNECTION_TYPE],
        "asset-uris": [
            {
                "schemes": ["mzshare"],
                "handler": "airflow_provider_mzshare.assets.mzshare.sanitize_uri",
                "factory": "airflow_provider_mzshare.assets.mzshare.create_asset",
            }
        ],
        "extra-links": [
            "airflow_provider_mzshare.links.JobLogLink",
            "airflow_provider_mzshare.links.SparkUILink",
            "airflow_provider_mzshare.links.StatusLink",
        ],
        "plugins": [
            {"name": "mzshare", "plugin-class": "airflow_provider_mzshare.plugins.mzshare.MzSharePlugin"},
        ],
        "config": {"mzshare": {"description": "Options of the mzshare provider.", "options": _OPTIONS}},
    }


def _modules(*names: str) -> list[dict[str, Any]]:
    return [{"integration-name": "mzshare", "python-modules": [f"airflow_provider_mzshare.{name}" for name in names]}]


_TEXT = {"type": ["string", "null"]}
_SECONDS = {"type": ["number", "null"], "minimum": 0.1, "maximum": 3600}
_MEGABYTES = {"type": ["integer", "null"], "minimum": 0, "maximum": 9999999}
_COUNT = {"type": ["integer", "null"], "minimum": 1, "maximum": 9999}

_CONNECTION_TYPE: dict[str, Any] = {
    "connection-type": "mzshare",
    "hook-name": "mzshare catalog",
    "hook-class-name": "airflow_provider_mzshare.hooks.mzshare.MzShareHook",
    "ui-field-behaviour": {
        "hidden-fields": ["extra"],
        "relabeling": {
            "host": "Catalog host (Postgres)",
            "schema": "Catalog database",
            "login": "Catalog user",
            "password": "Catalog password",
            "port": "Catalog port",
        },
        "placeholders": {"host": "empty: an SQLite catalog in the home folder", "port": "5432"},
    },
    "conn-fields": {
        "home": {
            "label": "Home folder",
            "description": "Jobs, logs and, without a host, the catalog. Empty: MZSHARE_HOME, or ~/.mzshare.",
            "schema": _TEXT,
        },
        "warehouse": {
            "label": "Warehouse",
            "description": "Where the tables are: a folder, or a URI of an object store. Empty: in the home folder.",
            "schema": _TEXT,
        },
        "master": {
            "label": "Spark master",
            "description": "local[*], local[N] or spark://HOST:PORT.",
            "schema": _TEXT,
        },
        "backfill_master": {
            "label": "Spark master of backfills",
            "description": "Empty: half of the cores of local[N], or the same cluster.",
            "schema": _TEXT,
        },
        "launcher": {
            "label": "Launcher",
            "description": "How to run apps. Empty: process, on the machine that starts them.",
            "schema": _TEXT,
        },
        "jars": {"label": "Jar folder", "description": "Where the pinned jars are.", "schema": _TEXT},
        "lease_seconds": {
            "label": "Lease, seconds",
            "description": "How long an app may be silent before another takes over.",
            "schema": _SECONDS,
        },
        "heartbeat_seconds": {
            "label": "Heartbeat, seconds",
            "description": "How often an app shows that it is alive; at most half the lease.",
            "schema": _SECONDS,
        },
        "max_backfills": {
            "label": "Backfills at once",
            "description": "How many may run at once; the others are queued. Empty: by the machine's cores and memory.",
            "schema": _COUNT,
        },
        "key_index_mb": {
            "label": "Memory for keys, MiB",
            "description": "How much the indexes of an app's keyed tables may take. Empty: by the machine's memory.",
            "schema": _MEGABYTES,
        },
        "spark_conf": {
            "label": "Spark settings",
            "description": 'A JSON object, such as {"spark.driver.memory": "2g"}. Only known keys are allowed.',
            "schema": {"type": ["string", "null"], "format": "multiline"},
        },
        "sslmode": {
            "label": "Catalog sslmode (Postgres)",
            "schema": {
                "type": ["string", "null"],
                "enum": [None, "disable", "allow", "prefer", "require", "verify-ca", "verify-full"],
            },
        },
    },
}

_OPTIONS: dict[str, Any] = {
    "poll_interval": {
        "description": "While something waits: seconds between two looks at the catalog.",
        "version_added": "0.1.0",
        "type": "float",
        "example": None,
        "default": "1.0",
    },
    "status_page": {
        "description": (
            "Serve /mzshare/status and the logs of jobs, read-only, from Airflow's API server. Airflow does not "
            "check who asks for pages of plugins: switch this on only where everyone who can reach it may read them."
        ),
        "version_added": "0.1.0",
        "type": "boolean",
        "example": None,
        "default": "False",
    },
    "status_conn_id": {
        "description": "The connection whose catalog the status page shows.",
        "version_added": "0.1.0",
        "type": "string",
        "example": None,
        "default": "mzshare_default",
    },
}
