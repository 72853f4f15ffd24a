"""Reading a data file into rows of text cells, with every malformed file refused by name."""

import csv
import json
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TypeAlias

from encoders.experiments.errors import ExperimentError

Row: TypeAlias = dict[str, str]


def read_table(path: Path) -> list[Row]:
    """Read a `.csv` (with a header line) or `.jsonl` (one object a line) file.

    Cells come back as text, a missing one as the empty string.

    Raises:
        ExperimentError: the file is absent, of another kind, not UTF-8, malformed or empty.
    """
    readers = {".csv": _read_csv, ".jsonl": _read_jsonl}
    if path.suffix not in readers:
        raise ExperimentError(f"data file {path}: its name must end in {' or '.join(readers)}, not '{path.suffix}'")
    if not path.is_file():
        raise ExperimentError(f"data file {path} does not exist" if not path.exists() else f"{path} is not a file")
    try:
        rows = readers[path.suffix](path)
    except UnicodeDecodeError as error:
        raise ExperimentError(f"data file {path} is not UTF-8: {error.reason} at byte {error.start}") from error
    except OSError as error:
        raise ExperimentError(f"data file {path} cannot be read: {error.strerror}") from error
    if not rows:
        raise ExperimentError(f"data file {path} has no rows")
    return rows


def require_columns(rows: Sequence[Row], columns: Sequence[str], source: str) -> None:
    """Refuse columns that no row has, naming those there are.

    Raises:
        ExperimentError: names the first missing column, the nearest name and all names.
    """
    present = list(dict.fromkeys(name for row in rows for name in row))
    for column in columns:
        if column not in present:
            nearest = get_close_matches(column, present, n=1)
            hint = f"did you mean '{nearest[0]}'? " if nearest else ""
            raise ExperimentError(f"{source} has no column '{column}': {hint}its columns are {', '.join(present)}")


def _read_csv(path: Path) -> list[Row]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file)
        try:
            header, *lines = list(reader) or [[]]
        except csv.Error as error:
            raise ExperimentError(f"data file {path}, line {reader.line_num}: {error}") from error
    repeated = {name for name in header if header.count(name) > 1}
    if repeated:
        raise ExperimentError(f"data file {path} has more than one column '{min(repeated)}'")
    rows = [line for line in lines if line]
    for number, line in enumerate(rows, start=1):
        if len(line) != len(header):
            raise ExperimentError(
                f"data file {path}, row {number}: {len(line)} cells, but the header has {len(header)}"
            )
    return [dict(zip(header, line, strict=True)) for line in rows]


def _read_jsonl(path: Path) -> list[Row]:
    rows: list[Row] = []
    with path.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                raise ExperimentError(f"data file {path}, line {number}: not JSON: {error.msg}") from error
            if not isinstance(row, dict):
                raise ExperimentError(f"data file {path}, line {number}: not a JSON object")
            rows.append({name: _as_text(value) for name, value in row.items()})
    return rows


def _as_text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
