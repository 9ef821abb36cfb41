"""Proves a table against its source: reads the range again, without Spark, and compares record by record or, where
records change rows, key by key.

What is in the table is what the source's records say, or the check fails with the first record or key that is not. It
writes nothing, neither upstream nor in the warehouse.
"""

from __future__ import annotations

from collections.abc import Callable

from airflow_provider_mzshare.connectors.base import Journals
from airflow_provider_mzshare.connectors.connections import ConnectionStore
from airflow_provider_mzshare.control.catalog import Catalog
from airflow_provider_mzshare.control.catalog.log.journals import journals_of
from airflow_provider_mzshare.control.catalog.objects.lookup import TableItem
from airflow_provider_mzshare.control.lifecycle.check_table import explain
from airflow_provider_mzshare.control.lifecycle.key_check import KeyCheck
from airflow_provider_mzshare.control.lifecycle.key_facts import find_key_facts
from airflow_provider_mzshare.control.lifecycle.progress import Progress
from airflow_provider_mzshare.control.lifecycle.record_check import RecordCheck
from airflow_provider_mzshare.control.lifecycle.upstream_parts import check_history
from airflow_provider_mzshare.control.lifecycle.verifiable import Scope, find_scope
from airflow_provider_mzshare.control.lifecycle.verified import Verified
from airflow_provider_mzshare.control.upstreams import open_records, open_upstream
from airflow_provider_mzshare.errors import NotReadable, UpstreamChanged, WarehouseUnreachable


def verify_table(
    catalog: Catalog,
    connections: ConnectionStore,
    warehouse: str,
    table: TableItem,
    *,
    everything: bool = False,
    report: Callable[[Progress], None] | None = None,
) -> Verified:
    """Compare what the table's last backfill wrote, up to and with the cutover's tick, with the source.

    A table whose rows change is compared from its start on, as it was at that tick.

    :param everything: compare from the table's start to its present position instead; so, too, without any cutover.
    """
    with catalog.read() as session:
        scope = find_scope(session, table.id, everything=everything)
        facts = find_key_facts(session, scope) if scope.is_keyed else None
    told = report or (lambda progress: None)
    try:
        check = RecordCheck(scope, warehouse, told) if facts is None else KeyCheck(scope, warehouse, told, facts)
        return _verify(check, scope, connections, journals_of(catalog, warehouse))
    except (NotReadable, WarehouseUnreachable) as error:
        raise explain(catalog, warehouse, [scope.point], error) from error


def _verify(check: RecordCheck, scope: Scope, connections: ConnectionStore, journals: Journals) -> Verified:
    source = scope.source
    with open_upstream(connections, source.spec, source.incarnation, journals=journals) as upstream:
        try:
            upstream.check_identity(source.incarnation)
            check_history(upstream, scope)
            with open_records(connections, source.spec, source.incarnation, journals=journals) as reader:
                lost = check.run(reader, upstream)
            upstream.check_identity(source.incarnation)
        except UpstreamChanged as gone:
            return check.result(gone.message)
    check.check_strays()
    check.check_certificate()
    return check.result(lost)
