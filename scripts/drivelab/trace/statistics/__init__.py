"""Count a trace into tables, in two passes and bounded memory."""
