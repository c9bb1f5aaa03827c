"""Run replays: as a step of a study, or one alone."""
