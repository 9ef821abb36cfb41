"""A world without Spark, disks or clocks, in which the tick log's rules meet crashes, zombies and lost answers.

Every app is a generator that stops between any two of its steps; a seeded scheduler decides who goes on. The rules are
the real ones; catalog and Delta log are lists in memory that behave as the real ones were measured to behave.
``Mutant`` leaves one rule out, to show that the check finds it.
"""

from tests.support.simulation.late_indexes import LateWorld, run_late
from tests.support.simulation.mutants import KEEPING, KEYED, LATE, VECTORS, Mutant, Violation
from tests.support.simulation.vector_world import VectorWorld, run_vectors
from tests.support.simulation.world import KEEPING_KINDS, KEYED_KINDS, World, run

__all__ = [
    "KEEPING",
    "KEEPING_KINDS",
    "KEYED",
    "KEYED_KINDS",
    "LATE",
    "VECTORS",
    "LateWorld",
    "Mutant",
    "VectorWorld",
    "Violation",
    "World",
    "run",
    "run_late",
    "run_vectors",
]
