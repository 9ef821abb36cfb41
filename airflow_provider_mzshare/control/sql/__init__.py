"""The SQL surface: text to typed statements and back; nothing here executes or looks anything up."""
