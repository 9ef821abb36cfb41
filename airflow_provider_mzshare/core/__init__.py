"""Values and rules that everything stands on: ids, positions, columns, specs, and the tick log. No input, no output."""
