"""Get the tests of the installed transformers: they come with its source distribution, not with its wheel.

Everything lands in a folder that git ignores, by default `.cache/transformers-suite` in the repository; the environment
variable HF_TESTS_DIR names another. The files are transformers' own (Apache-2.0) and are never copied elsewhere.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from importlib.metadata import version as installed_version
from pathlib import Path, PurePosixPath

PACKAGE = "transformers_tests"

# Three modules and a text that the common tests read are not in the source distribution.
STUBS = {
    "exporters/test_export.py": "class ExportTesterMixin:\n    pass\n",
    "generation/test_utils.py": "class GenerationTesterMixin:\n    pass\n",
    "utils/test_configuration_utils.py": """config_common_kwargs = {
    "return_dict": False,
    "output_hidden_states": True,
    "output_attentions": True,
    "dtype": "float16",
    "chunk_size_feed_forward": 5,
    "architectures": ["BertModel"],
    "id2label": {0: "label"},
    "label2id": {"label": "0"},
    "problem_type": "regression",
}
""",
    "fixtures/sample_text.txt": "A short text.\n",
}


class Unavailable(Exception):
    """The source distribution can't be had."""


def cache_folder() -> Path:
    """Return where the tests are kept."""
    default = Path(__file__).resolve().parents[2] / ".cache" / "transformers-suite"
    return Path(os.environ.get("HF_TESTS_DIR", default)).resolve()


def fetch() -> Path:
    """Return the folder, ready for `sys.path`, in which the tests are the package `transformers_tests`.

    Raises:
        Unavailable: the source distribution is neither there nor can it be downloaded.
    """
    version = installed_version("transformers")
    folder = cache_folder() / version
    if not (folder / PACKAGE).is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".gitignore").write_text("*\n")
        archive = folder / f"transformers-{version}.tar.gz"
        if not archive.is_file():
            download(version, folder)
        partial = folder / f"{PACKAGE}.partial"
        shutil.rmtree(partial, ignore_errors=True)
        unpack(archive, partial)
        partial.rename(folder / PACKAGE)
    write_stubs(folder / PACKAGE)
    return folder


def download(version: str, folder: Path) -> None:
    """Download the source distribution with pip."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    only_source = ["--no-binary", "transformers", "--no-deps", "--no-build-isolation"]
    result = subprocess.run(
        [*pip, *only_source, "--dest", folder, f"transformers=={version}"], capture_output=True, text=True, check=False
    )
    if result.returncode:
        reason = (result.stderr.strip().splitlines() or ["pip gave no reason"])[-1].removeprefix("ERROR: ")
        raise Unavailable(f"the source distribution of transformers {version} could not be downloaded ({reason})")


def unpack(archive: Path, target: Path) -> None:
    """Extract tests/*.py, as they are, into `target`."""
    target.mkdir()
    with tarfile.open(archive) as tar:
        for member in tar:
            path = PurePosixPath(member.name)
            if member.isfile() and path.match("transformers-*/tests/*.py"):
                source = tar.extractfile(member)
                assert source is not None
                (target / path.name).write_bytes(source.read())


def write_stubs(package: Path) -> None:
    """Stand in for what is missing."""
    (package / "__init__.py").touch()
    for name, text in STUBS.items():
        stub = package / name
        stub.parent.mkdir(exist_ok=True)
        (stub.parent / "__init__.py").touch()
        stub.write_text(text)
