"""Archive a whole study in one file that is readable without drivelab and reveals every changed byte."""

KINDS = ("unfinished", "tables", "figures", "report", "logs", "virtual", "traces")
"""What --without can leave out: folders of the results, `unfinished` recordings, and all `traces`."""
