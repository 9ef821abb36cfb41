"""Pure values: ids, positions, schemas, specs. No input or output, no clock."""
