"""The report: a view model made from tables, and one self-contained HTML page made from that."""
