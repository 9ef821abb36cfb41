"""What a table's spec asks of the fan-out: the same whether an app or a check decodes its records."""

from __future__ import annotations

from airflow_provider_mzshare.connectors.places import Place
from airflow_provider_mzshare.connectors.registry import kind_of
from airflow_provider_mzshare.core.specs import TableSpec
from airflow_provider_mzshare.envelopes.registry import envelope_named, envelope_target
from airflow_provider_mzshare.formats.registry import format_named, format_target
from airflow_provider_mzshare.storage.fanout.hashing import row_hash
from airflow_provider_mzshare.storage.fanout.plan import MemberPlan


def member_plan(
    table_id: str,
    spec: TableSpec,
    *,
    place: Place,
    hash_version: int,
    data_path: str = "",
    errors_path: str = "",
    visible: tuple[int, str] | None = None,
) -> MemberPlan:
    """:param visible: as a member's plan has it."""
    decoder = format_named(spec.format)
    names = [column.name for column in spec.columns]
    return MemberPlan(
        table_id=table_id,
        format=format_target(spec.format),
        columns=tuple((c.name, c.type) for c in spec.columns),
        include=tuple((i.what, i.name) for i in spec.include),
        data_path=data_path,
        errors_path=errors_path,
        stop_on_error=spec.on_decode_error == "stop",
        partitions=partitions_of(spec),
        text_columns=spec.text_columns if decoder.own_columns else (),
        envelope=envelope_target(spec.envelope),
        keys=key_of(spec),
        keys_in_value=bool(spec.primary_key) or (decoder.own_columns and decoder.takes_changes),
        key_format=format_target(spec.key_format) if spec.key_format else "",
        key_columns=tuple((c.name, c.type) for c in spec.key_columns),
        inline_errors=spec.inline_errors or "",
        hash_version=row_hash(hash_version).version,
        place=place,
        reference=spec.details.stream_reference if spec.details else "",
        upstream=spec.details.stream_columns(names) if spec.details else (),
        visible=visible,
    )


def key_of(spec: TableSpec) -> tuple[str, ...]:
    """The columns that make the key of a table whose rows change; nothing for a table whose rows do not."""
    if envelope_named(spec.envelope).appends:
        return ()
    if format_named(spec.format).own_columns:
        return kind_of(spec.details).stored_reference(spec).keys if spec.details else ()
    if spec.primary_key:
        return spec.primary_key
    return tuple(c.name for c in spec.key_columns) or tuple(i.name for i in spec.include if i.what == "key")


def partitions_of(spec: TableSpec) -> tuple[int, ...]:
    """Those of the source that carry what the table was made from; empty is all of them."""
    return kind_of(spec.details).stored_reference(spec).partitions if spec.details else ()
