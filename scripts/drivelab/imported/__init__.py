"""Import results of other tools, and printed results, as the tables of a study."""

IMPORTED = "imported.json"
"""File that marks the results folder of an import."""
