"""What the demo says beside its story: where things are, and what to do next."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from airflow_provider_mzshare.demo.story import KEYED, NEW, SOURCE
from airflow_provider_mzshare.embedded.airflow import EmbeddedAirflow
from airflow_provider_mzshare.embedded.kafka import EmbeddedKafka

_JOINS = ("MZSHARE_HOME", "MZSHARE_JARS", "AIRFLOW_CONN_DEMO_KAFKA")


def addresses(airflow: EmbeddedAirflow) -> str:
    return (
        f"  Airflow      {airflow.url}   user {airflow.user}   password {airflow.password}\n"
        f"  status page  {airflow.url}/mzshare/status"
    )


def next_steps(env: Mapping[str, str], broker: EmbeddedKafka, airflow: EmbeddedAirflow, *, keep: bool) -> str:
    """While it stays up: how to join it from another terminal. Else how to make it stay."""
    if not keep:
        return (
            "\nNext: `KEEP=1 make demo` stays up after this and says how to join it from another terminal;\n"
            "`docs/reference/airflow.md` says how to run the same DAGs on a source of your own."
        )
    mzshare = "mzshare" if shutil.which("mzshare") else shlex.quote(str(Path(sys.executable).with_name("mzshare")))
    exports = "\n".join(f"  export {name}={shlex.quote(env[name])}" for name in _JOINS)
    return (
        f"\nIt stays up. The producer has stopped; broker at {broker.bootstrap}, and\n{addresses(airflow)}\n"
        f"In another terminal:\n{exports}\n"
        f"  {mzshare} status {SOURCE}\n  {mzshare} read {KEYED} --limit 5\n  {mzshare} verify {NEW}\n"
        f"Or trigger mzshare_add_table in Airflow, with another table's name.\nCtrl-C stops everything."
    )
