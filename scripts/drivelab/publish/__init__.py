"""Publish many archived studies as a static site: drive models, results, evidence, comparisons, an index for tools."""

FORMAT = 1
"""Version of `index.json` and `study.json`, see workflow/schemas/site.schema.yaml."""
