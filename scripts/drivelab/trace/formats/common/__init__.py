"""What the formats share: reading files, parsing columns, tables of requests, order, import and export."""
