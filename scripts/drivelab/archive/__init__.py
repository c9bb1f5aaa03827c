"""Archives of studies: one file that holds all of a study, is read without drivelab, and in which no byte can change
unnoticed."""

KINDS = ("unfinished", "tables", "figures", "report", "logs", "virtual", "traces")
"""What can be left out: folders of the results, `unfinished` recordings, and `traces` wherever they lie."""
