"""The kinds of sources that there are, by name: one line each. Other packages have theirs as ``mzshare.connectors``.

Nobody else tells kinds apart: who has a spec asks :func:`kind_of` it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, SerializeAsAny
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
    """All that can be loaded: one of another package that cannot does not stop the others. Its own sources say why."""
    for name in CONNECTORS:
        try:
            yield find_kind(name)
        except KindNotLoaded as error:
            log.warning("%s", error.line)


def kinds_by_words() -> Mapping[str, ConnectorKind[Any]]:
    """By what stands behind FROM. Ours come first, so nobody takes their words."""
    found: dict[str, ConnectorKind[Any]] = {}
    for kind in kinds():
        found.setdefault(kind.words, kind)
    return found


def own_place_names() -> tuple[str, ...]:
    """What this package's kinds call the columns of their places, each once."""
    return tuple(dict.fromkeys(name for kind in CONNECTORS.own for name in CONNECTORS.get(kind).place.names))


def parse_source_spec(text: str) -> SourceSpec:
    """As it is stored: each kind has its own."""
    spec: SourceSpec = find_kind(str(from_json(text).get("kind"))).spec.model_validate_json(text)
    return spec


def _spec_by_kind(value: Any) -> Any:
    return find_kind(str(value.get("kind"))).spec.model_validate(value) if isinstance(value, Mapping) else value


AnySourceSpec = Annotated[SerializeAsAny[SourceSpec], BeforeValidator(_spec_by_kind)]
"""A field that holds the spec of any kind."""
