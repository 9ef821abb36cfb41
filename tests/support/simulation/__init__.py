"""A world without Spark, disks or clocks, in which the tick log's rules meet crashes, zombies and lost answers.

Every app is a generator that stops between any two of its steps; a seeded scheduler decides who goes on. The rules are
the real ones; catalog and Delta log are lists in memory that behave as the real ones were measured to behave.
``Mutant`` leaves one rule out, to show that the check finds it.
"""

from tests.support.simulation.mutants import Mutant, Violation
from tests.support.simulation.world import World, run

__all__ = ["Mutant", "Violation", "World", "run"]
