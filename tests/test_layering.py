"""Who may import whom, what an import costs, and how long a file may get."""

import ast
import os
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FAMILIES = ("helmbert", "norbert", "distilbert")
SOURCES = sorted([*ROOT.glob("encoders/**/*.py"), *ROOT.glob("shared/**/*.py")])
COMPAT = ROOT / "shared" / "encoders_shared" / "compat.py"

# Parts of transformers that are not public and move between releases
UNSTABLE_MODULES = (
    "huggingface_hub.dataclasses",
    "huggingface_hub.errors",
    "transformers.conversion_mapping",
    "transformers.core_model_loading",
    "transformers.initialization",
    "transformers.integrations",
    "transformers.loss",
    "transformers.masking_utils",
    "transformers.modeling_layers",
    "transformers.models.auto.modeling_auto",
    "transformers.utils.output_capturing",
)
UNSTABLE_NAMES = {
    "ALL_ATTENTION_FUNCTIONS",
    "GradientCheckpointingLayer",
    "LOSS_MAPPING",
    "TransformersKwargs",
    "can_return_tuple",
    "capture_outputs",
    "check_model_inputs",
    "create_bidirectional_mask",
    "merge_with_config_defaults",
}

IMPORT_EVERYTHING = """
import importlib, pkgutil, sys
for name in ("encoders", "encoders_shared"):
    for module in pkgutil.walk_packages(importlib.import_module(name).__path__, name + "."):
        importlib.import_module(module.name)
for name, module in sorted(sys.modules.items()):
    if name.split(".")[0] in ("encoders", "encoders_shared", "shared"):
        print(name, module.__file__)
"""

IMPORT_EACH_FAMILY = f"""
import importlib, sys
for family in {FAMILIES}:
    importlib.import_module(f"encoders.{{family}}.tasks")
    print(*(loaded := [name for name in sys.modules if name.split(".")[0] == "encoders"]))
    for name in loaded:
        del sys.modules[name]
"""


def package_of(path):
    """Dotted name of the package that a file is in."""
    base = ROOT / "shared" if (ROOT / "shared") in path.parents else ROOT
    return ".".join(path.relative_to(base).parent.parts)


def imports(path):
    """Every module or name that a file imports, in full, wherever the statement stands."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parents = package_of(path).split(".")
            parents = parents[: len(parents) - node.level + 1] if node.level else []
            module = ".".join([*parents, *([node.module] if node.module else [])])
            found += [f"{module}.{alias.name}" for alias in node.names]
    return found


def within(name, *modules):
    return any(name == module or name.startswith(module + ".") for module in modules)


def python(code):
    """Run code in a new interpreter that finds the two packages; return what it prints."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "shared")])}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout


def short(path):
    return str(path.relative_to(ROOT))


def test_the_sources_are_found():
    folders = {short(path.parent) for path in SOURCES}
    assert {"encoders", "shared/encoders_shared", *(f"encoders/{family}" for family in FAMILIES)} <= folders


@pytest.mark.parametrize("path", [p for p in SOURCES if "shared" in p.relative_to(ROOT).parts], ids=short)
def test_the_shared_layer_imports_no_encoder(path):
    assert [name for name in imports(path) if within(name, "encoders")] == []


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_imports_no_sibling(family):
    siblings = [f"encoders.{other}" for other in FAMILIES if other != family]
    for path in (ROOT / "encoders" / family).rglob("*.py"):
        assert [name for name in imports(path) if within(name, *siblings)] == [], short(path)


@pytest.mark.parametrize("path", [path for path in SOURCES if path != COMPAT], ids=short)
def test_only_compat_touches_what_is_not_public(path):
    from_outside = [name for name in imports(path) if within(name, "transformers", "huggingface_hub")]
    for name in from_outside:
        last = name.rpartition(".")[2]
        assert not within(name, *UNSTABLE_MODULES), f"{name} belongs in compat.py"
        assert last not in UNSTABLE_NAMES, f"{name} belongs in compat.py"
        assert not last.endswith("_MAPPING_NAMES"), f"{name} belongs in compat.py"


def test_compat_is_used():
    assert any(within(name, *UNSTABLE_MODULES) for name in imports(COMPAT))


def test_nothing_is_imported_from_shared():
    assert [short(path) for path in SOURCES for name in imports(path) if within(name, "shared")] == []


def test_every_module_lies_in_this_repository():
    found = dict(line.split(maxsplit=1) for line in python(IMPORT_EVERYTHING).splitlines())
    assert {"encoders.auto", "encoders_shared.losses", *(f"encoders.{family}.tasks" for family in FAMILIES)} <= set(
        found
    )
    assert [name for name in found if within(name, "shared")] == []
    for name, file in found.items():
        home = ROOT / "shared" / "encoders_shared" if within(name, "encoders_shared") else ROOT / "encoders"
        assert home in Path(file).parents, f"{name} comes from {file}"


def test_importing_one_family_brings_in_no_other():
    loaded = [set(line.split()) for line in python(IMPORT_EACH_FAMILY).splitlines()]
    for family, names in zip(FAMILIES, loaded, strict=True):
        siblings = [f"encoders.{other}" for other in FAMILIES if other != family]
        assert f"encoders.{family}.tasks" in names
        assert [name for name in names if within(name, *siblings)] == []


def test_import_encoders_is_light():
    code = """
import sys, time
start = time.process_time()
import encoders
print(time.process_time() - start, *sys.modules)
"""
    runs = [python(code).split() for _ in range(3)]
    heavy = ("torch", "transformers", "numpy", "tokenizers", "safetensors", "encoders_shared")
    assert [name for name in runs[0][1:] if within(name, *heavy)] == []
    assert min(float(run[0]) for run in runs) < 0.2


def test_files_stay_short():
    lines = {short(path): len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES}
    assert {name: count for name, count in lines.items() if count > 400} == {}
    assert statistics.median(lines.values()) < 150
