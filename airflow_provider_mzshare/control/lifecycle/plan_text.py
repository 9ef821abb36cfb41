"""Plans in words, for people. Decides nothing."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_mzshare.control.lifecycle.table_plans import (
    Backfill,
    CutOver,
    DeletesKept,
    Estimate,
    ShareFromFirstTick,
    Snapshot,
    StartAtNow,
    Step,
    TablePlan,
)

_SHOWN = 8
"""How many partitions and tables are listed one by one."""
_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")


def plan_text(plan: TablePlan) -> str:
    """Several lines, without one at the end."""
    lines = [f"plan for source {plan.source}:"]
    for number, step in enumerate(plan.steps, start=1):
        first, *more = step_lines(step)
        lines.append(f"  {number}. {first}")
        lines += [f"     {line}" for line in more]
    if plan.deletes is not None:
        lines.append(f"  warning: {warning(plan.deletes)}")
    return "\n".join(lines)


def warning(kept: DeletesKept) -> str:
    """What may happen to keyed tables whose upstream compacts."""
    tables, many = _some(kept.tables), len(kept.tables) > 1
    told = f"the upstream compacts, and keeps deletes for {_duration(kept.seconds)}"
    if kept.too_short and kept.backfill_seconds is not None:
        told += f"; the backfill may take {_duration(kept.backfill_seconds)}"
    return f"{told}. If {tables} {'are' if many else 'is'} behind for longer, {'they stall' if many else 'it stalls'}"


def step_lines(step: Step) -> list[str]:
    """One line that says what happens, and more with the details."""
    tables = _some(step.tables)
    if isinstance(step, ShareFromFirstTick):
        return [
            f"share: {tables} {_verb(step, 'joins', 'join')} at the next tick; the source has read nothing before it"
        ]
    if isinstance(step, StartAtNow):
        return [f"start at now: {tables} {_verb(step, 'joins', 'join')} at the next tick, without earlier records"]
    if isinstance(step, Backfill):
        return _backfill(step, tables)
    if isinstance(step, Snapshot):
        return [f"snapshot: {tables} {_verb(step, 'is', 'are')} read from the upstream's tables, as of one moment"]
    if isinstance(step, CutOver):
        return _cut_over(step, tables)
    return [f"follow: {_verb(step, 'it gets', 'they get')} the ticks that are minted meanwhile"]


def _verb(step: Step, one: str, many: str) -> str:
    return one if len(step.tables) == 1 else many


def _backfill(step: Backfill, tables: str) -> list[str]:
    estimate = step.estimate
    lines = [f"backfill: {tables}, in one read of {_ticks(step)}: {_amount(estimate)}"]
    history = list(step.history.items())
    for partition, (lower, upper) in history[:_SHOWN]:
        lines.append(f"partition {partition}: offsets {lower:,} to {upper - 1:,}")
    if len(history) > _SHOWN:
        lines.append(f"and {len(history) - _SHOWN:,} more partitions")
    if estimate.rate == 0:
        lines.append("it is paused: BACKFILL RATE is 0")
    elif estimate.seconds is not None:
        lines.append(f"at BACKFILL RATE {estimate.rate:,} at most {_duration(estimate.seconds)}")
    return lines


def _ticks(step: Backfill) -> str:
    if step.last < step.first:
        return "no tick"
    return f"tick {step.first:,}" if step.first == step.last else f"ticks {step.first:,} to {step.last:,}"


def _amount(estimate: Estimate) -> str:
    records = f"at most {estimate.records:,} record{'' if estimate.records == 1 else 's'}"
    size = f", about {_bytes(estimate.size)}" if estimate.size is not None else ""
    return f"{records} of {estimate.partitions:,} partition{'' if estimate.partitions == 1 else 's'}{size}"


def _cut_over(step: CutOver, tables: str) -> list[str]:
    verb = _verb(step, "becomes live at the first tick that begins at its position", "")
    verb = verb or "become live, each at the first tick that begins at its position"
    lines = [f"cut over: {tables} {verb}"]
    if step.replaced:
        lines.append(f"until then the rows of {_some(step.replaced)} stay as they are")
    return lines


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _bytes(size: int) -> str:
    number, unit = float(size), 0
    while number >= 999.5 and unit < len(_UNITS) - 1:
        number, unit = number / 1_000, unit + 1
    return f"{number:.3g} {_UNITS[unit]}"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{round(minutes / 60, 1):g} h"
