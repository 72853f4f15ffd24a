import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from encoders.experiments import docstrings as built_in
from encoders.experiments.docstrings import CHARACTERS, MINIMUM_WORDS, PACKAGES, collect, installed_packages
from encoders.experiments.errors import ExperimentError
from encoders.experiments.tables import Row

QUOTA = {"test": 2, "dev": 2, "train": 4}
SENTENCE = "returns the {} of the widget as a plain number of"


def write_package(folder: Path, name: str, modules: int = 12) -> Path:
    """A package whose every module has a class with a documented method, and says so with its own words."""
    for index in range(modules):
        path = folder / name / f"part{index % 3}" / f"module{index}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        units = name[::-1]  # texts differ between packages when the names are masked
        path.write_text(
            f'''"""Module {index} of {name}: {SENTENCE.format(index)} {units}, see {name}.core."""
raise RuntimeError("a module that must not be imported")

class {name.title()}Widget{index}:
    """Class {index} {SENTENCE.format(f"{name.title()}Widget{index}")} {units}."""

    def width(self):
        """Width {index} {SENTENCE.format(f"{name}_width")} {units}."""

    def short(self):
        """Too short."""
''',
            encoding="utf-8",
        )
    return folder / name


@pytest.fixture
def packages(tmp_path: Path) -> dict[str, Path]:
    return {name: write_package(tmp_path, name) for name in ("apple", "pear")}


def test_every_package_gives_the_same_number_of_rows_to_each_split(packages: dict[str, Path]):
    counts = Counter((row["label"], row["split"]) for row in collect(packages, QUOTA))
    assert counts == {(name, split): size for name in packages for split, size in QUOTA.items()}


def test_no_module_is_in_two_splits_and_no_text_occurs_twice(packages: dict[str, Path]):
    rows = collect(packages, QUOTA)
    assert_no_leaks(rows)


def test_docstrings_of_modules_classes_and_methods_are_found_and_short_ones_left_out(tmp_path: Path):
    folder = write_package(tmp_path, "apple", modules=4)
    rows = collect({"apple": folder, "pear": write_package(tmp_path, "pear", 4)}, {"train": 12})
    texts = [row["text"] for row in rows if row["label"] == "apple"]
    assert {text.split()[0] for text in texts} == {"Module", "Class", "Width"}
    assert not any("Too short" in text for text in texts)


def test_the_own_name_is_masked_wherever_it_stands_and_other_names_are_kept(tmp_path: Path):
    write_package(tmp_path, "pear")
    path = tmp_path / "apple" / "module.py"
    path.parent.mkdir()
    path.write_text('"""An Apple, apple.core, AppleWidget, pineapple_tree, an APPLE and a pear on one tree."""')
    rows = collect({"apple": path.parent, "pear": tmp_path / "pear"}, {"train": 1})
    [text] = [row["text"] for row in rows if row["label"] == "apple"]
    assert text == ("An PACKAGE, PACKAGE.core, PACKAGEWidget, pinePACKAGE_tree, an PACKAGE and a pear on one tree.")


def test_the_same_tree_gives_the_same_rows_wherever_it_stands(tmp_path: Path, packages: dict[str, Path]):
    elsewhere = {name: write_package(tmp_path / "elsewhere", name) for name in packages}
    assert collect(packages, QUOTA) == collect(elsewhere, QUOTA)


def test_a_text_that_two_packages_share_is_kept_once(packages: dict[str, Path]):
    for folder in packages.values():
        for index in range(5):
            text = f"Sentence {index} was copied from one package to the other, word by word"
            (folder / f"copied{index}.py").write_text(f'"""{text}."""')
    rows = collect(packages, {"train": 30})
    assert any("copied" in row["text"] for row in rows)
    assert_no_leaks(rows)


def test_tests_vendored_packages_and_files_that_do_not_parse_are_passed_over(tmp_path: Path, packages: dict[str, Path]):
    rows = collect(packages, QUOTA)
    for name, folder in packages.items():
        for place in ("tests", "site-packages", "__pycache__"):
            (folder / place).mkdir()
            (folder / place / "extra.py").write_text(
                '"""A docstring in a place where nobody should look for docstrings."""'
            )
        (folder / "template.py").write_text(f'"""{name}"""\n{{% if broken %}}\n')
        (folder / "nulls.py").write_bytes(b'"""a docstring in a file with a null byte in it, of more words"""\0')
    assert collect(packages, QUOTA) == rows


def test_a_package_with_too_few_docstrings_is_left_out(tmp_path: Path, packages: dict[str, Path]):
    small = write_package(tmp_path, "plum", modules=1)
    assert {row["label"] for row in collect({**packages, "plum": small}, QUOTA)} == {"apple", "pear"}
    with pytest.raises(ExperimentError, match=r"fewer than two installed packages .* pass --data FILE"):
        collect({"plum": small, "apple": packages["apple"]}, QUOTA)


def test_packages_are_looked_up_without_an_import():
    program = (
        "import sys\nfrom encoders.experiments.docstrings import installed_packages\n"
        "wanted = {'torch', 'transformers', 'matplotlib'}\n"
        "assert wanted <= installed_packages().keys()\nassert not wanted & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    folders = installed_packages()
    assert {"python", "torch", "transformers", "numpy"} <= folders.keys()
    assert (folders["python"] / "json" / "__init__.py").is_file()
    assert (folders["numpy"] / "__init__.py").is_file()


def test_the_built_in_data_is_balanced_disjoint_and_masked():
    quota = {"test": 8, "dev": 8, "train": 16}
    rows = collect(installed_packages(), quota)
    assert_no_leaks(rows)
    counts = Counter((row["label"], row["split"]) for row in rows)
    assert len({label for label, _ in counts}) >= 5
    assert all(count == quota[split] for (_, split), count in counts.items())
    for row in rows:
        assert not any(name in row["text"].lower() for name in PACKAGES[row["label"]])
        assert len(row["text"]) <= CHARACTERS
        assert len(row["text"].split()) >= MINIMUM_WORDS / 2


def test_the_data_set_says_what_it_is(monkeypatch: pytest.MonkeyPatch, packages: dict[str, Path]):
    monkeypatch.setattr(built_in, "installed_packages", lambda: packages)
    monkeypatch.setattr(built_in, "ROWS_PER_PACKAGE", QUOTA)
    data = built_in.docstrings()
    assert (data.name, data.task, data.classes) == ("docstrings", "classification", ("apple", "pear"))
    assert data.sizes == {"train": 8, "dev": 4, "test": 4}


def assert_no_leaks(rows: list[Row]) -> None:
    splits: dict[tuple[str, str], set[str]] = {}
    for row in rows:
        splits.setdefault((row["label"], row["module"]), set()).add(row["split"])
    assert all(len(names) == 1 for names in splits.values())
    texts = [row["text"].casefold() for row in rows]
    assert len(set(texts)) == len(texts)
