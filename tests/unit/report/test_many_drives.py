"""The report of many drives is that of few, with a row for each drive and its pages on demand."""

from __future__ import annotations

import base64
import gzip
import re

from many_drives import many_drives

from drivelab.report import content, html

STUDY = {"name": "many", "title": "Many", "basis": "d1", "margin_pct": 5.0}


def test_each_drive_has_rows_in_one_table_and_pages_on_demand() -> None:
    report = content.build(many_drives(9), STUDY, [], [], None)
    assert re.match(r"d\d has the best value of 9 drives at random write 4 KiB: ", report.sentence.replace("\xa0", " "))
    assert report.verdict_table
    rows = [(row[0].text, row[0].anchor) for row in report.verdict_table.rows]
    assert rows == [(f"d{number}", f"d{number}-{name}") for name in ("pts-iops", "pts-latency")
                    for number in range(2, 10)]  # fmt: skip
    page = html.render(report)
    assert len(set(re.findall(r'data-holds="(d\d)-pts-iops \1-pts-latency"', page))) == 9
    assert 'id="d2-pts-iops"' not in page
    packed = re.findall(r'class="packed">([^<]*)<', page)
    assert any('id="d2-pts-iops"' in gzip.decompress(base64.b64decode(text)).decode() for text in packed)


def test_few_drives_have_columns_and_open_pages() -> None:
    report = content.build(many_drives(7), STUDY, [], [], None)
    assert report.verdict_table
    assert len(report.verdict_table.rows) == 2
    assert 'id="d2-pts-iops"' in html.render(report)
