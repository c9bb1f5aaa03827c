"""Select one volume of a file: offsets of different volumes must not mix."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from drivelab.errors import UserError
from drivelab.words import some

SHOWN = 10
MOST_VOLUMES = 1 << 20


class VolumeFilter:
    """Select the rows of one volume: the chosen or the only one."""

    def __init__(self, path: Path, chosen: str | None) -> None:
        self._path = path
        self._chosen = chosen
        self._seen: dict[str, None] = {}
        self.others = 0
        """Rows of other volumes."""

    @property
    def name(self) -> str:
        """The selected volume; empty if the format has no volumes."""
        return self._chosen if self._chosen is not None else next(iter(self._seen), "")

    def select(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows of the volume, without column `volume`.

        Raises UserError when a volume must be chosen, or the format has no volumes.
        """
        if "volume" not in batch.schema.names:
            if self._chosen is not None:
                raise UserError(f"{self._path}: its format has no volumes; remove --volume {self._chosen}")
            return batch
        volumes = batch["volume"]
        names = _present(volumes)
        self._seen |= dict.fromkeys(name for name in names.values() if len(self._seen) <= MOST_VOLUMES)
        if self._chosen is None and len(self._seen) > 1:
            raise UserError(
                f"{self._path}: has several volumes ({_shown(self._seen)}); choose one with --volume; "
                "'drivelab trace volumes' lists them"
            )
        rest = batch.drop_columns(["volume"])
        if self._chosen is None or list(names.values()) == [self._chosen]:
            return rest
        place = next((index for index, name in names.items() if name == self._chosen), -1)
        mask = volumes.indices.to_numpy() == place
        chosen = rest.filter(pa.array(mask))
        self.others += batch.num_rows - chosen.num_rows
        return chosen

    def refuse_nothing(self) -> None:
        """Raise UserError when the file does not have the chosen volume."""
        if self._chosen is not None and self._seen and self._chosen not in self._seen:
            raise UserError(
                f"{self._path}: has no request of volume '{self._chosen}', only of {_shown(self._seen)}; "
                "'drivelab trace volumes' lists them"
            )


def count_rows(batch: pa.RecordBatch) -> dict[str, int]:
    """Count the rows of each volume; the name is empty without volumes."""
    if "volume" not in batch.schema.names:
        return {"": batch.num_rows} if batch.num_rows else {}
    volumes = batch["volume"]
    counts = np.bincount(volumes.indices.to_numpy(), minlength=len(volumes.dictionary)).tolist()
    return {name: count for name, count in zip(volumes.dictionary.to_pylist(), counts, strict=True) if count}


def _present(volumes: pa.DictionaryArray) -> dict[int, str]:
    """Return the names of volumes with rows, by their place in the dictionary."""
    counts = np.bincount(volumes.indices.to_numpy(), minlength=len(volumes.dictionary))
    return {int(place): volumes.dictionary[int(place)].as_py() for place in np.flatnonzero(counts)}


def _shown(names: dict[str, None]) -> str:
    return some(list(names), SHOWN)
