"""What triggers tell tasks and assets: typed payloads, so that sender and receiver cannot disagree.

Payloads are stored by Airflow between two processes, which may run different versions: a wire format.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from airflow_provider_mzshare.errors import JobFailed

Outcome = Literal["converged", "failed"]


@dataclass(frozen=True)
class ConvergedEvent:
    """The end of a wait for a table.

    :param result: what the sensor returns: the certificate of the cutover; or how far the table is.
    :param error: why the table will not become live, or not get that far. :param hint: what the user can do next.
    """

    outcome: Outcome
    table: str
    result: Mapping[str, Any] | None = None
    error: str = ""
    hint: str = ""

    def to_payload(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_payload(cls, payload: Mapping[str, Any]) -> ConvergedEvent:
        """Fields of a newer version are left out."""
        known = {name: payload[name] for name in cls.__dataclass_fields__ if name in payload}
        return cls(**known)

    def result_or_raise(self) -> dict[str, Any]:
        if self.outcome == "converged":
            return dict(self.result or {})
        raise JobFailed(self.error, hint=self.hint)


@dataclass(frozen=True)
class TableUpdate:
    """Everything up to the tick is committed in the table, ``rows`` in all."""

    table: str
    tick: int
    mz_timestamp: int
    rows: int

    def to_payload(self) -> dict[str, Any]:
        return asdict(self)
