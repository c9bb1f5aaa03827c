import pytest
from emulation.machine import Machine

pytestmark = pytest.mark.emulated


def test_x(stacked: Machine) -> None:
    r = stacked.run("python3 /guest/composed.py 'namespace over fabrics'", 600).json()
    import json
    import pathlib

    pathlib.Path("/tmp/h2_observed.json").write_text(json.dumps(r, indent=1))
