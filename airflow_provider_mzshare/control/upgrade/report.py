"""What was done to each object, or would be, and what the state of dbt and Terraform has to say afterwards."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from airflow_provider_mzshare.control.catalog.objects.item_names import display_name
from airflow_provider_mzshare.control.upgrade.plan import Action, Plan
from airflow_provider_mzshare.control.upgrade.plan_sql import SAME_ROWS, ObjectChange, object_changes

State = Literal["planned", "done", "already", "pending", "failed"]
"""``already``: there was nothing to do any more. ``pending``: not begun, since the run stopped before."""

_AFTERWARDS: dict[Action, str] = {
    "migrate": "check the result; then mzshare migrate --finalize, or --rollback; when nothing is left to migrate: "
    "ALTER SYSTEM SET force_source_table_syntax = true (no migration does that itself)",
    "rollback": "mzshare migrate migrates it again, with the same ids",
    "finalize": "when nothing is left to migrate: ALTER SYSTEM SET force_source_table_syntax = true",
}


@dataclass(frozen=True)
class ObjectReport:
    """``change`` in words; ``dbt`` and ``terraform`` are empty where their state can stay."""

    id: str
    kind: str
    name: str
    was: str
    change: str
    before: str | None
    after: str | None
    dbt: str = ""
    terraform: str = ""


@dataclass(frozen=True)
class SourceReport:
    source: str
    """The name it had when it was looked at, as in SQL."""
    id: str
    state: State
    error: str = ""
    objects: tuple[ObjectReport, ...] = ()
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, text: dict[str, Any]) -> SourceReport:
        objects = tuple(ObjectReport(**one) for one in text["objects"])
        return cls(**{**text, "objects": objects, "notes": tuple(text["notes"])})


@dataclass(frozen=True)
class Report:
    action: Action
    dry_run: bool
    sources: list[SourceReport] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        return any(one.state == "failed" for one in self.sources)

    @property
    def pending(self) -> bool:
        return any(one.state == "pending" for one in self.sources)

    @property
    def next(self) -> str:
        if not self.sources:
            return f"there is nothing to {self.action}"
        if any(one.state == "planned" for one in self.sources):
            return "--apply carries the plan out"
        if self.failed:
            return "solve what failed, then run the same command again: it does nothing twice"
        if self.pending:
            return "run the same command again: it goes on with what is pending"
        return _AFTERWARDS[self.action]

    def to_json(self) -> dict[str, Any]:
        counts = {state: sum(one.state == state for one in self.sources) for state in State.__args__}  # type: ignore[attr-defined]
        return {
            "action": self.action,
            "dry_run": self.dry_run,
            "counts": counts,
            "sources": [one.to_json() for one in self.sources],
            "next": self.next,
        }


def source_report(plan: Plan, state: State) -> SourceReport:
    objects = tuple(_object_report(plan, change) for change in object_changes(plan))
    return SourceReport(
        display_name(plan.before.source.name), plan.before.source.id, state, objects=objects, notes=plan.notes
    )


def _object_report(plan: Plan, change: ObjectChange) -> ObjectReport:
    name, was = change.name_after or change.name_before, change.name_before or change.name_after
    assert name is not None, change.id
    assert was is not None, change.id
    return ObjectReport(
        id=change.id,
        kind=change.kind_after or change.kind_before or "",
        name=display_name(name),
        was=f"{change.kind_before} {display_name(was)}" if change.kind_before else "",
        change=_in_words(plan, change),
        before=change.before,
        after=change.after,
        **_tools(plan, change),
    )


def _in_words(plan: Plan, change: ObjectChange) -> str:
    if not change.changed:
        return SAME_ROWS if change.redirected else "none"
    if change.name_before is None:
        return "the source's rows get this new name and id; same collections and history"
    if change.name_after is None:
        return (
            "dropped"
            if plan.action == "finalize"
            else "becomes the source's own relation again; same collections and history"
        )
    words = []
    if change.kind_before != change.kind_after:
        words.append(f"{change.kind_before} becomes {change.kind_after}; same id, collections and history")
    if change.name_before != change.name_after:
        words.append(f"renamed {display_name(change.name_after)}; same id")
    return "; ".join(words) or "another statement"


def _tools(plan: Plan, change: ObjectChange) -> dict[str, str]:
    """What must change in the state of dbt and Terraform that was written for the object before."""
    if change.kind_before == "progress":
        # No statement created the progress, so no state has it; but dbt models may read it.
        read = display_name(plan.after.source.name)
        return {} if change.name_after else {"dbt": f"models that read it by name must read {read} instead"}
    if not change.changed:
        return {}
    was = display_name(change.name_before) if change.name_before else ""
    name = display_name(change.name_after) if change.name_after else ""
    if not was:
        return {
            "dbt": f"model {name}: make it a {change.kind_after} with the statement after",
            "terraform": f"add {change.kind_after} {name} and import it by id {change.id}",
        }
    if not name:
        return {"dbt": f"remove model {was}", "terraform": f"remove {was} from the state, id {change.id}"}
    if change.kind_before != change.kind_after:
        return {
            "dbt": f"model {name}: change {change.kind_before} to {change.kind_after}, with the statement after",
            "terraform": f"move {was} to a resource of kind {change.kind_after}; the id {change.id} stays",
        }
    if was == name:
        return {
            "dbt": f"model {name}: use the statement after",
            "terraform": f"the arguments of {name} change; the id {change.id} stays",
        }
    return {
        "dbt": f"rename model {was} to {name} and use the statement after",
        "terraform": f"name and arguments of {was} change, the name to {name}; the id {change.id} stays",
    }
