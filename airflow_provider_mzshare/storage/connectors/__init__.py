"""Connectors: what the ingestion needs of an upstream, whatever its kind. Reading rows is Spark's part, not theirs."""

from __future__ import annotations

from typing import Protocol

from airflow_provider_mzshare.types.positions import Position


class Described(Protocol):
    """An upstream as it is now."""

    @property
    def incarnation(self) -> str:
        """Which upstream this is, beyond its name: it changes when the thing is made anew."""
        ...

    @property
    def partitions(self) -> tuple[int, ...]: ...


class Upstream(Protocol):
    """The questions an ingestion asks. Each call is bounded in time and raises errors of ours only."""

    def describe(self) -> Described: ...

    def check_identity(self, incarnation: str) -> None:
        """Raise ``UpstreamChanged`` unless it is still the one the log was read from. Cheap: asked at every tick."""
        ...

    def check_history(self, lower: Position) -> None:
        """Raise ``UpstreamChanged`` if anything from ``lower`` on can no longer be read."""
        ...

    def begin_offsets(self) -> Position: ...

    def end_offsets(self) -> Position:
        """How far a reader can get now: past committed data only."""
        ...

    def close(self) -> None: ...
