"""The status page: sources and tables as a small page or as JSON, and the end of a job's log. It changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html import escape
from typing import Annotated, Any

from airflow.sdk import conf
from fastapi import FastAPI, HTTPException, Query
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response

from airflow_provider_mzshare.cli.render import plain
from airflow_provider_mzshare.control.supervision.runs import find_log
from airflow_provider_mzshare.core.positions import Position
from airflow_provider_mzshare.errors import MzShareError, TransientError
from airflow_provider_mzshare.hooks.base import DEFAULT_CONN_ID
from airflow_provider_mzshare.hooks.mzshare import MzShareHook

MAX_LINES = 2_000
_SHOWN = ("name", "health", "status", "tables", "tick", "rows", "errors", "lag", "position", "reason", "hint", "job")
_STYLE = "body{font-family:sans-serif}td,th{padding:.2em .6em;text-align:left;border-bottom:1px solid #ccc}"


def make_app() -> FastAPI:
    app = FastAPI(title="mzshare", docs_url=None, redoc_url=None, openapi_url=None)
    app.get("/status")(status)
    app.get("/jobs/{job_id}/log")(log)
    return app


def status(name: str | None = None, output: Annotated[str, Query(pattern="^(html|json)$")] = "html") -> Response:
    with _hook() as hook:
        sources, tables = hook.status(name or None)
    found = {"sources": [_row(one) for one in sources], "tables": [_row(one) for one in tables]}
    if output == "json":
        return JSONResponse(found)
    parts = "".join(f"<h2>{title}</h2>{_table(rows)}" for title, rows in found.items() if rows)
    return HTMLResponse(f"<!doctype html><title>mzshare</title><style>{_STYLE}</style>{parts or 'nothing yet'}")


def log(job_id: str, tail: Annotated[int, Query(ge=1, le=MAX_LINES)] = 500) -> Response:
    with _hook() as hook:
        lines = list(find_log(hook.catalog, hook.launchers, job_id).lines(tail=tail))
    return PlainTextResponse("\n".join(lines) or "no log of this job on this machine")


@contextmanager
def _hook() -> Iterator[MzShareHook]:
    hook = MzShareHook(conf.get("mzshare", "status_conn_id", fallback=DEFAULT_CONN_ID))
    try:
        yield hook
    except TransientError as error:
        raise HTTPException(503, error.line) from error
    except MzShareError as error:
        raise HTTPException(404, error.line) from error
    finally:
        hook.close()


def _row(status: Any) -> dict[str, Any]:
    fields = {**vars(status)}
    shown = fields.pop("shown")
    return {name: plain(_offsets(value, shown)) for name, value in fields.items()}


def _offsets(value: Any, shown: Mapping[str, str]) -> Any:
    return shown or dict(value.offsets) if isinstance(value, Position) else value


def _table(rows: list[dict[str, Any]]) -> str:
    columns = [name for name in _SHOWN if any(row.get(name) not in (None, "") for row in rows)]
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join("<tr>" + "".join(f"<td>{_cell(name, row.get(name))}</td>" for name in columns) for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def _cell(name: str, value: Any) -> str:
    text = escape("" if value is None else str(value))
    return f'<a href="jobs/{text}/log">{text}</a>' if name == "job" and value else text
