"""The kinds of sources that there are, by name: one line each. Other packages have theirs as ``mzshare.connectors``.

Nobody else tells kinds apart: who has a spec asks :func:`kind_of` it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, SerializeAsAny
from pydantic_core import from_json

from airflow_provider_mzshare.connectors.kind import ConnectorKind
from airflow_provider_mzshare.core.registry import Registry
from airflow_provider_mzshare.core.specs import ExportDetails, SourceSpec
from airflow_provider_mzshare.errors import KindNotLoaded, UnknownKind

log = logging.getLogger(__name__)

CONNECTORS: Registry[ConnectorKind[Any]] = Registry(
    "connector",
    "mzshare.connectors",
    {
        "kafka": "airflow_provider_mzshare.connectors.kafka.kind:KIND",
        "load_generator": "airflow_provider_mzshare.connectors.load_generator.kind:KIND",
        "journal": "airflow_provider_mzshare.connectors.journal.kind:KIND",
        "postgres": "airflow_provider_mzshare.connectors.postgres.kind:KIND",
    },
)


def kind_of(stored: SourceSpec | ExportDetails) -> ConnectorKind[Any]:
    return find_kind(stored.kind)


def find_kind(name: str) -> ConnectorKind[Any]:
    if name not in CONNECTORS:
        raise UnknownKind(name, list(CONNECTORS))
    try:
        return CONNECTORS.get(name)
    except Exception as error:
        raise KindNotLoaded(name, CONNECTORS.targets[name], f"{type(error).__name__}: {error}") from error


def kinds() -> Iterator[ConnectorKind[Any]]:
    """All kinds that can be loaded. A kind of another package that cannot be loaded does not stop the others."""
    for name in CONNECTORS:
        try:
            yield find_kind(name)
        except KindNotLoaded as error:
            log.warning("%s", error.line)


def kinds_by_words() -> Mapping[str, ConnectorKind[Any]]:
    """Kinds by the words after FROM. Ours come first, so that no other package can take their words."""
    found: dict[str, ConnectorKind[Any]] = {}
    for kind in kinds():
        found.setdefault(kind.words, kind)
    return found


def own_place_names() -> tuple[str, ...]:
    """The column names of the places of our own kinds, each once."""
    return tuple(dict.fromkeys(name for kind in CONNECTORS.own for name in CONNECTORS.get(kind).place.names))


# ── what is stored ────────────────────────────────────────────────────────────────────────────────────────────────────


class AbsentSpec(SourceSpec):
    """The stored spec of a kind that is not installed here. The source can be listed and dropped, but not used."""

    model_config = ConfigDict(frozen=True, extra="allow")


class AbsentDetails(ExportDetails):
    """The stored details of a table from such a source."""

    model_config = ConfigDict(frozen=True, extra="allow")


def parse_source_spec(text: str) -> SourceSpec:
    """As it is stored: each kind has its own."""
    return _read_spec(from_json(text))


def _read_spec(stored: Mapping[str, Any]) -> SourceSpec:
    kind = _kind_if_here(stored)
    return kind.spec.model_validate(stored) if kind else AbsentSpec.model_validate(stored)


def read_details(stored: Mapping[str, Any]) -> ExportDetails:
    kind = _kind_if_here(stored)
    return kind.details.model_validate(stored) if kind else AbsentDetails.model_validate(stored)


def absence(spec: SourceSpec) -> UnknownKind | KindNotLoaded | None:
    """Why a source cannot be read here at all; None if it can."""
    try:
        find_kind(spec.kind)
    except (UnknownKind, KindNotLoaded) as error:
        return error
    return None


def _kind_if_here(stored: Mapping[str, Any]) -> ConnectorKind[Any] | None:
    try:
        return find_kind(str(stored.get("kind")))
    except (UnknownKind, KindNotLoaded):
        return None


def _spec_by_kind(value: Any) -> Any:
    return _read_spec(value) if isinstance(value, Mapping) else value


AnySourceSpec = Annotated[SerializeAsAny[SourceSpec], BeforeValidator(_spec_by_kind)]
"""A field that holds the spec of any kind."""
