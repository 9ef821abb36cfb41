"""Tables as assets: ``mzshare://<connection>/<schema>/<table>``, one spelling for one table. Looks nothing up.

The connection's id stands for the catalog, so that tables of one name in two catalogs are two assets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, quote, unquote

from airflow_provider_mzshare.control.sql.names import DEFAULT_SCHEMA, QualifiedName
from airflow_provider_mzshare.errors import StatementError

if TYPE_CHECKING:
    from airflow.sdk import Asset

SCHEME = "mzshare"
DEFAULT_CONN_ID = "mzshare_default"


def table_asset(table: str, mzshare_conn_id: str = DEFAULT_CONN_ID, *, extra: dict[str, Any] | None = None) -> Asset:
    """The asset of a table, for ``outlets``, ``inlets`` and ``schedule``.

    :param table: ``[schema.]name`` as in SQL.
    """
    from airflow.sdk import Asset

    return Asset(uri=table_uri(table, mzshare_conn_id), extra=extra or {})


def create_asset(*, table: str, mzshare_conn_id: str = DEFAULT_CONN_ID, extra: dict[str, Any] | None = None) -> Asset:
    """What Airflow calls to make an asset of our scheme."""
    return table_asset(table, mzshare_conn_id, extra=extra)


def table_uri(table: str, mzshare_conn_id: str = DEFAULT_CONN_ID) -> str:
    from airflow_provider_mzshare.control.sql.script import parse_name

    try:
        name = parse_name(table)
    except StatementError:
        raise ValueError(f"{table!r} is not a table's name; write [schema.]name") from None
    return f"{SCHEME}://{_quoted(mzshare_conn_id)}{_path(name)}"


def full_name(name: tuple[str, str]) -> str:
    """Schema and name as in SQL."""
    return str(QualifiedName(*name))


def sanitize_uri(uri: SplitResult) -> SplitResult:
    """One spelling: percent signs only where they must be, the schema always there. Raises ValueError."""
    connection = unquote(uri.netloc)
    parts = [unquote(part) for part in uri.path.strip("/").split("/")]
    if not connection or not all(parts) or len(parts) > 2 or uri.query:
        raise ValueError(f"an mzshare asset has the form {SCHEME}://connection/schema/table, not {uri.geturl()!r}")
    schema, name = parts if len(parts) == 2 else (DEFAULT_SCHEMA, parts[0])
    try:
        return uri._replace(netloc=_quoted(connection), path=_path(QualifiedName(schema, name)))
    except StatementError as error:
        raise ValueError(str(error)) from None


def _path(name: QualifiedName) -> str:
    return f"/{_quoted(name.schema)}/{_quoted(name.name)}"


def _quoted(text: str) -> str:
    return quote(text, safe="")
