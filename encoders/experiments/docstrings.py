"""The built-in data set: which Python package does a docstring come from?

The docstrings are read from the source files of packages that are installed anyway, so the data needs no download.
Files are parsed, never imported.
"""

import ast
import hashlib
import re
import sysconfig
import warnings
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

from encoders.experiments.data import LabelledTexts
from encoders.experiments.errors import ExperimentError
from encoders.experiments.labelling import labelled_texts
from encoders.experiments.tables import Row

PACKAGES: dict[str, tuple[str, ...]] = {
    "python": ("python",),
    "torch": ("pytorch", "torch"),
    "transformers": ("transformers",),
    "numpy": ("numpy",),
    "sklearn": ("scikit-learn", "scikit learn", "sklearn"),
    "matplotlib": ("matplotlib",),
}
"""The packages, as imported ("python" is the standard library), each with the names that are masked in its texts."""

MASK = "PACKAGE"
ROWS_PER_PACKAGE = {"test": 40, "dev": 20, "train": 150}
ROWS_PER_MODULE = 3
CHARACTERS = 150
MINIMUM_WORDS = 10

_SKIPPED_FOLDERS = {"__pycache__", "site-packages", "dist-packages", "test", "tests", "idlelib", "lib2to3"}


def docstrings() -> LabelledTexts:
    """Gather the docstrings of those `PACKAGES` that are installed: the same number of each, split by module."""
    rows = collect(installed_packages(), ROWS_PER_PACKAGE)
    return labelled_texts(rows, name="docstrings", task="classification")


def installed_packages() -> dict[str, Path]:
    """Return the source folder of each of `PACKAGES` that is installed, without importing any."""
    folders: dict[str, Path] = {}
    for package in PACKAGES:
        if package == "python":
            folders[package] = Path(sysconfig.get_path("stdlib"))
        elif (spec := find_spec(package)) is not None and spec.submodule_search_locations:
            folders[package] = Path(spec.submodule_search_locations[0])
    return folders


def collect(folders: Mapping[str, Path], rows_per_split: Mapping[str, int]) -> list[Row]:
    """Return rows of text, label, split and module from the source folders of packages.

    Modules are taken in the order of the SHA-256 of their names, so the choice is arbitrary but the same everywhere,
    and no module is in two splits. No text occurs twice. Packages with too few docstrings are left out.

    Args:
        folders: the source folder of each package, by label.
        rows_per_split: how many rows each package gives to each split, in the order in which they are filled.
    """
    seen: set[str] = set()
    rows: list[Row] = []
    for label, folder in folders.items():
        found = _package_rows(label, folder, rows_per_split, seen)
        if len(found) == sum(rows_per_split.values()):
            rows.extend(found)
    if len({row["label"] for row in rows}) < 2:
        raise ExperimentError("docstrings: fewer than two installed packages have enough of them; pass --data FILE")
    return rows


def _package_rows(label: str, folder: Path, rows_per_split: Mapping[str, int], seen: set[str]) -> list[Row]:
    rows: list[Row] = []
    modules = _modules(folder)
    for split, wanted in rows_per_split.items():
        filled = 0
        while filled < wanted and (module := next(modules, None)) is not None:
            for text in _module_texts(folder / module, PACKAGES.get(label, (label,))):
                if filled < wanted and text.casefold() not in seen:
                    seen.add(text.casefold())
                    rows.append({"text": text, "label": label, "split": split, "module": module.as_posix()})
                    filled += 1
    return rows


def _modules(folder: Path) -> Iterator[Path]:
    paths = (path.relative_to(folder) for path in folder.rglob("*.py"))
    kept = [path for path in paths if not _SKIPPED_FOLDERS.intersection(path.parts)]
    return iter(sorted(kept, key=lambda path: hashlib.sha256(path.as_posix().encode()).hexdigest()))


def _module_texts(path: Path, names: tuple[str, ...]) -> list[str]:
    with warnings.catch_warnings(action="ignore"):  # invalid escapes in other people's strings
        try:
            tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError):  # templates and files for other versions of Python
            return []
    texts = [_clean(docstring, names) for docstring in _docstrings(tree)]
    return [text for text in texts if len(text.split()) >= MINIMUM_WORDS][:ROWS_PER_MODULE]


def _docstrings(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    """Yield the docstrings of a module, its functions, and its classes with their methods, in source order."""
    if docstring := ast.get_docstring(node):
        yield docstring
    if isinstance(node, ast.Module | ast.ClassDef):
        for child in node.body:
            if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield from _docstrings(child)


def _clean(docstring: str, names: tuple[str, ...]) -> str:
    masked = re.sub("|".join(map(re.escape, names)), MASK, docstring, flags=re.IGNORECASE)
    return " ".join(masked.split())[:CHARACTERS]
