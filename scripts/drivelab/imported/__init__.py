"""Results of other tools, and printed ones, as the tables of a study."""
