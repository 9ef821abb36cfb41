"""Binding of statements about sources: the upstream, settings, and what old syntax says of outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from sqlglot import exp

from airflow_provider_mzshare.control.sql import nodes
from airflow_provider_mzshare.control.sql import values as items
from airflow_provider_mzshare.control.sql.binding_parts import as_sql, parts, qualified_name
from airflow_provider_mzshare.control.sql.names import QualifiedName, check_name
from airflow_provider_mzshare.control.sql.options import GENERATOR_OPTIONS, SOURCE_SETTINGS
from airflow_provider_mzshare.control.sql.table_binding import TableBinding
from airflow_provider_mzshare.core.ids import ItemId
from airflow_provider_mzshare.core.specs import KafkaSourceSpec, LegacySpec, LoadGeneratorSpec, Start

SEVERAL_OUTPUTS = ("AUCTION",)
"""The generators that have more than one."""


def _column_path(path: nodes.Path) -> str:
    return as_sql(parts(path))


class SourceBinding(TableBinding):
    def _create_source(self, node: nodes.CreateSource) -> items.CreateSource:
        legacy = self._legacy(node)
        spec = self._kafka(node, legacy) if node.text("kind") == "KAFKA" else self._generator(node, legacy)
        single = legacy is not None and legacy.shape == "single"
        return items.CreateSource(
            name=qualified_name(node.this),
            if_not_exists=bool(node.args.get("exists")),
            connection=spec.connection if isinstance(spec, KafkaSourceSpec) else None,
            spec=spec,
            settings=self._settings(node),
            output=self._output(node, node.args.get("columns") or ()) if single else None,
        )

    def _kafka(self, node: nodes.CreateSource, legacy: LegacySpec | None) -> KafkaSourceSpec:
        options = {option.name: option for option in node.expressions}
        if "TOPIC" not in options:
            self.refuse(node, "a KAFKA source needs TOPIC '…'")
        topic, connection = options["TOPIC"].expression, node.args["connection"].name
        self._checked(topic, lambda: check_name(topic.name, "a topic"))
        return KafkaSourceSpec(connection=connection, topic=topic.name, start=self._start(options), legacy=legacy)

    def _start(self, options: dict[str, nodes.Option]) -> Start:
        offsets, timestamp = options.get("START OFFSET"), options.get("START TIMESTAMP")
        if offsets and timestamp:
            self.refuse(timestamp, "START OFFSET and START TIMESTAMP exclude each other")
        if offsets:
            asked = {str(number): int(offset.name) for number, offset in enumerate(offsets.expression.expressions)}
            return Start(mode="offset", asked=asked)
        if timestamp:
            return Start(mode="timestamp", timestamp=int(timestamp.expression.name))
        return Start()

    def _generator(self, node: nodes.CreateSource, legacy: LegacySpec | None) -> LoadGeneratorSpec:
        values: dict[str, Any] = {}
        for option in node.expressions:
            setting, literal = GENERATOR_OPTIONS[option.name], option.expression
            values[setting.field] = self._checked(literal, lambda: setting.read(option.name, literal.name))  # noqa: B023
        generator = node.text("generator").lower().replace(" ", "_")
        return LoadGeneratorSpec(generator=cast("Any", generator), legacy=legacy, **values)

    # ── old syntax ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _legacy(self, node: nodes.CreateSource) -> LegacySpec | None:
        outputs, progress = node.args.get("outputs"), node.args.get("progress")
        self._check_clauses(node)
        columns = self._column_options(node, _column_path)
        if not outputs and columns:
            option = self._options(node).get("TEXT COLUMNS") or self._options(node)["EXCLUDE COLUMNS"]
            self.refuse(option, f"{option.name} on a source needs FOR ALL TABLES; else it is an option of CREATE TABLE")
        if not outputs and not node.text("format") and not node.text("envelope"):
            if progress:
                self.refuse(progress, "EXPOSE PROGRESS AS needs old syntax: a source's own relation is its progress")
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
        format_, envelope = node.args.get("format"), node.args.get("envelope")
        include, outputs = next(iter(node.args.get("include") or ()), None), node.args.get("outputs")
        columns = next(iter(node.args.get("columns") or ()), None)
        if node.text("kind") == "KAFKA":
            needs_format = {"INCLUDE": include, "ENVELOPE": envelope, "a column list": columns}
            self._refuse_any({f"FOR {outputs.name}": outputs} if outputs else {}, "a KAFKA source has one output")
            if not format_:
                self._refuse_any(needs_format, "an old-style KAFKA source needs FORMAT")
            return
        own = {"FORMAT": format_, "INCLUDE": include, "a column list": columns}
        self._refuse_any(own, "a LOAD GENERATOR has columns of its own")
        generator = node.text("generator")
        if generator in SEVERAL_OUTPUTS:
            self._refuse_any({"ENVELOPE": envelope}, f"{generator} has several outputs; FOR ALL TABLES makes them")
        elif outputs:
            self._refuse_any({f"FOR {outputs.name}": outputs}, f"{generator} has one output")

    def _refuse_any(self, clauses: Mapping[str, exp.Expr | None], why: str) -> None:
        for clause, place in clauses.items():
            if place is not None:
                self.refuse(place, f"{clause} has no place here: {why}")

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
        self._check_columns(node, node.expressions)
        return items.CreateSubsource(
            name=qualified_name(node.this),
            columns=self._columns(node.expressions),
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
                settings[setting.field] = self._checked(literal, lambda: setting.read(name, literal.name))  # noqa: B023
        return settings

    def _refresh_references(self, node: nodes.RefreshReferences) -> items.RefreshReferences:
        return items.RefreshReferences(ItemId(node.this.name) if node.args.get("id") else qualified_name(node.this))


def _given_name(subsource: nodes.Subsource) -> QualifiedName | None:
    alias = subsource.args.get("alias")
    return qualified_name(alias) if alias else None


def _subsource_name(subsource: nodes.Subsource, schema: str) -> QualifiedName:
    """Without a name of its own it has its reference's, beside its source."""
    return _given_name(subsource) or QualifiedName(schema, parts(subsource.this)[-1])
