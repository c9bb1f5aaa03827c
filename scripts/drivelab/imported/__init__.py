"""Results of other tools, and printed ones, as the tables of a study."""

IMPORTED = "imported.json"
"""File that an import leaves in its folder of results."""
