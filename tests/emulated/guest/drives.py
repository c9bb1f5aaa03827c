"""Print drivelab's facts about the drives of this machine as JSON, by serial number."""

from __future__ import annotations

import json

from drivelab.drives import guard, identity, write_cache


def facts(name: str) -> dict[str, object]:
    return {
        **identity.describe(name),
        "name": name,
        "write_cache_state": write_cache.state(name),
        "holder": guard.holder(f"/dev/{name}", name),
    }


print(json.dumps({str(drive["serial"]): drive for drive in map(facts, identity.whole_disks())}))
