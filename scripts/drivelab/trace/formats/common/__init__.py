"""Shared code of the formats: files, columns, requests, order, import, export."""
