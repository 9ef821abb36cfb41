"""Binding of statements about sources: the upstream, settings, and what old syntax says of outputs."""

from __future__ import annotations

from typing import Any, cast

from sqlglot import exp

from airflow_provider_mzshare.connectors.kind import Clause, ConnectorKind, Written
from airflow_provider_mzshare.connectors.registry import kinds_by_words
from airflow_provider_mzshare.control.sql import nodes
from airflow_provider_mzshare.control.sql import values as items
from airflow_provider_mzshare.control.sql.binding_parts import as_sql, parts, qualified_name
from airflow_provider_mzshare.control.sql.checks import check_columns, check_upstream
from airflow_provider_mzshare.control.sql.names import QualifiedName
from airflow_provider_mzshare.control.sql.options import read_option
from airflow_provider_mzshare.control.sql.table_binding import TableBinding, column_specs, place_of
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.options import OptionValue
from airflow_provider_mzshare.core.specs import SOURCE_SETTINGS, LegacySpec, SourceSettings, SourceSpec


def _column_path(path: nodes.Path) -> str:
    return as_sql(parts(path))


class SourceBinding(TableBinding):
    def _create_source(self, node: nodes.CreateSource) -> items.CreateSource:
        kind, legacy = kinds_by_words()[node.text("kind")], self._legacy(node)
        spec = self._spec(node, kind).model_copy(update={"legacy": legacy})
        single = legacy is not None and legacy.shape == "single"
        return items.CreateSource(
            name=qualified_name(node.this),
            if_not_exists=bool(node.args.get("exists")),
            connection=kind.connection_name(spec),
            spec=spec,
            settings=self._settings(node),
            output=self._output(node, node.args.get("columns") or ()) if single else None,
        )

    def _spec(self, node: nodes.CreateSource, kind: ConnectorKind[Any]) -> SourceSpec:
        given = {option.name: option for option in node.expressions}
        variant = node.text("variant") or None
        self._fits(lambda clause: given.get(clause.name, node), lambda: check_upstream(kind, variant, given))
        values: dict[str, OptionValue] = {}
        for option in kind.options:
            if option.words in given:
                literal = given[option.words].expression
                values[option.words] = self._checked(literal, lambda: read_option(option, literal, kind.spec))  # noqa: B023
        connection = node.args.get("connection")
        written = Written(connection.name if connection else None, variant, values)
        spec: SourceSpec = self._checked(node, lambda: kind.read(written))
        return spec

    # ── old syntax ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _legacy(self, node: nodes.CreateSource) -> LegacySpec | None:
        outputs, progress = node.args.get("outputs"), node.args.get("progress")
        self._check_clauses(node)
        columns = self._column_options(node, _column_path)
        if not outputs and columns:
            option = self._options(node).get("TEXT COLUMNS") or self._options(node)["EXCLUDE COLUMNS"]
            self.refuse(option, f"on a source, {option.name} needs FOR ALL TABLES; otherwise use it in CREATE TABLE")
        if not outputs and not node.text("format") and not node.text("envelope"):
            if progress:
                self.refuse(
                    progress, "EXPOSE PROGRESS AS is only for old syntax: the source's own relation is its progress"
                )
            return None
        progress_name = str(qualified_name(progress)) if progress else None
        return LegacySpec(progress=progress_name, **self._shape(node, outputs), **columns)

    def _shape(self, node: nodes.CreateSource, outputs: nodes.Outputs | None) -> dict[str, Any]:
        if outputs is None:
            return {"shape": "single"}
        if outputs.name == "SCHEMAS":
            return {"shape": "schemas", "schemas": self._once("schema", [(s, s.name) for s in outputs.expressions])}
        if outputs.name == "TABLES":
            return {"shape": "tables", "tables": self._subsources(node)}
        return {"shape": "all_tables"}

    def _check_clauses(self, node: nodes.CreateSource) -> None:
        """Which of the old clauses a kind of source can have at all."""
        outputs = node.args.get("outputs")
        places: dict[Clause, exp.Expr | None] = {
            "FORMAT": node.args.get("key_format") or node.args.get("format"),
            "INCLUDE": next(iter(node.args.get("include") or ()), None),
            "ENVELOPE": node.args.get("envelope"),
            "FOR": outputs,
            "a column list": next(iter(node.args.get("columns") or ()), None),
        }
        given = {clause: place for clause, place in places.items() if place is not None}
        for clause, why in kinds_by_words()[node.text("kind")].misplaced(node.text("variant") or None, given):
            if clause in given:
                shown = f"FOR {outputs.name}" if clause == "FOR" and outputs else clause
                self.refuse(given[clause], f"{shown} is not allowed here: {why}")

    def _subsources(self, node: nodes.CreateSource) -> tuple[tuple[str, str], ...]:
        schema = qualified_name(node.this).schema
        pairs = [
            (subsource, as_sql(parts(subsource.this)), str(_subsource_name(subsource, schema)))
            for subsource in node.args["outputs"].expressions
        ]
        self._once("reference", [(subsource, reference) for subsource, reference, _ in pairs])
        self._once("subsource", [(subsource, name) for subsource, _, name in pairs])
        return tuple((reference, name) for _, reference, name in pairs)

    def _add_subsources(self, node: nodes.AddSubsources) -> items.AddSubsources:
        self._once("reference", [(subsource, as_sql(parts(subsource.this))) for subsource in node.expressions])
        return items.AddSubsources(
            source=qualified_name(node.this),
            subsources=tuple((parts(s.this), _given_name(s)) for s in node.expressions),
            **self._column_options(node, _column_path),
        )

    def _drop_subsources(self, node: nodes.DropSubsources) -> items.DropSubsources:
        self._once("subsource", [(name.this, str(qualified_name(name))) for name in node.expressions])
        return items.DropSubsources(
            source=qualified_name(node.this),
            names=tuple(qualified_name(name) for name in node.expressions),
            if_exists=bool(node.args.get("exists")),
            cascade=bool(node.args.get("cascade")),
        )

    def _create_subsource(self, node: nodes.CreateSubsource) -> items.CreateSubsource:
        options = self._options(node)
        reference = options.get("EXTERNAL REFERENCE")
        if (reference is not None) == ("PROGRESS" in options):
            self.refuse(node, "a subsource needs WITH (EXTERNAL REFERENCE …), or PROGRESS instead")
        columns = column_specs(node.expressions)
        self._fits(
            lambda clause: place_of(node, node.expressions, clause),
            lambda: check_columns(items.Output(columns=columns)),
        )
        return items.CreateSubsource(
            name=qualified_name(node.this),
            columns=columns,
            source=qualified_name(node.args["source"]),
            reference=parts(reference.expression) if reference else (),
            **self._column_options(node, lambda column: column.name),
        )

    # ── ALTER SOURCE ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _alter_source(self, node: nodes.AlterOptions) -> items.AlterSourceSet:
        reset = tuple(SOURCE_SETTINGS[name.name].field for name in node.args.get("reset") or ())
        return items.AlterSourceSet(name=qualified_name(node.this), settings=self._settings(node), reset=reset)

    def _settings(self, node: exp.Expr) -> dict[str, int | float]:
        settings = {}
        for name, option in self._options(node).items():
            if setting := SOURCE_SETTINGS.get(name):
                literal = option.expression
                read = lambda: read_option(setting, literal, SourceSettings)  # noqa: B023, E731
                settings[setting.field] = cast("int | float", self._checked(literal, read))
        return settings

    def _refresh_references(self, node: nodes.RefreshReferences) -> items.RefreshReferences:
        return items.RefreshReferences(ItemId(node.this.name) if node.args.get("id") else qualified_name(node.this))


def _given_name(subsource: nodes.Subsource) -> QualifiedName | None:
    alias = subsource.args.get("alias")
    return qualified_name(alias) if alias else None


def _subsource_name(subsource: nodes.Subsource, schema: str) -> QualifiedName:
    """Without a name of its own it has its reference's, beside its source."""
    return _given_name(subsource) or QualifiedName(schema, parts(subsource.this)[-1])
