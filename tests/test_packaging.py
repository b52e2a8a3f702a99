"""What a release consists of: the files in the wheel, the oldest versions it allows, the version it states."""

from __future__ import annotations

import re
import tomllib
import zipfile
from email.message import Message
from email.parser import BytesParser
from pathlib import Path
from typing import Any

import pytest
import yaml
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import fusili_mir

ROOT = Path(__file__).parent.parent
PACKAGES = {
    "fusili_mir": ROOT / "fusili_mir",
    "fusili_training": ROOT / "training/fusili_training",
    "fusili_export": ROOT / "export/fusili_export",
    "fusili_integrations": ROOT / "integrations/fusili_integrations",
}
RUNTIME_EXTRAS = ("cpu", "audio")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.Path:
    """The root of the wheel that the build backend makes of the source tree."""
    builder = WheelBuilder(str(ROOT))
    (file,) = builder.build(directory=str(tmp_path_factory.mktemp("dist")), versions=["standard"])
    return zipfile.Path(file)


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    """The table [project] of pyproject.toml."""
    table: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return table


def files_below(folder: Path) -> set[str]:
    files = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(folder).as_posix() for path in files}


def names(wheel: zipfile.Path) -> set[str]:
    return {name for name in wheel.root.namelist() if not name.endswith("/")}


def metadata(wheel: zipfile.Path) -> Message:
    (name,) = (name for name in names(wheel) if name.endswith(".dist-info/METADATA"))
    return BytesParser().parsebytes(wheel.root.read(name))


def test_the_wheel_has_four_packages_and_nothing_else_at_its_top(wheel: zipfile.Path) -> None:
    tops = {name.split("/")[0] for name in names(wheel)}
    assert tops == {*PACKAGES, f"fusili_mir-{fusili_mir.__version__}.dist-info"}


def test_the_wheel_has_every_file_of_the_packages_and_the_recipes(wheel: zipfile.Path) -> None:
    expected = {f"{package}/{file}" for package, folder in PACKAGES.items() for file in files_below(folder)}
    expected |= {f"fusili_training/recipes/{file}" for file in files_below(ROOT / "training/recipes")}
    assert {name for name in names(wheel) if ".dist-info/" not in name} == expected


@pytest.mark.parametrize(
    "file",
    [
        "fusili_mir/__init__.pyi",  # where the public names are stated, also when the package is used
        *(f"{package}/py.typed" for package in PACKAGES),
        *(f"fusili_mir/models/small/{name}.onnx" for name in ("image", "audio")),
        *(f"fusili_mir/hearing/{name}" for name in ("onsets.onnx", "reading.onnx", "networks.json")),
        "fusili_mir/models/small/manifest.json",
        *(f"fusili_mir/demo/files/hensel_bitte.{ending}" for ending in ("mxl", "png", "ogg", "csv")),
        *(f"fusili_mir/pages/fonts/{name}" for name in ("LiberationSerif-Regular.ttf", "OFL.txt")),
        "fusili_training/recipes/small-dense.toml",
        "fusili_training/recipes/base/small.toml",
        "fusili_training/recipes/render/strips.toml",
    ],
)
def test_what_is_not_code_is_in_the_wheel(wheel: zipfile.Path, file: str) -> None:
    assert file in names(wheel)


def test_the_wheel_is_small(wheel: zipfile.Path) -> None:
    assert sum(entry.compress_size for entry in wheel.root.infolist()) < 20_000_000


def test_no_test_and_no_benchmark_is_in_the_wheel(wheel: zipfile.Path) -> None:
    assert not [name for name in names(wheel) if re.search(r"benchmark|(^|/)(tests?/|test_|conftest)", name)]


def test_the_wheel_states_licence_command_and_extras(wheel: zipfile.Path) -> None:
    stated = metadata(wheel)
    assert stated["License-Expression"] == "Apache-2.0 AND OFL-1.1"
    assert {
        "cpu",
        "gpu",
        "audio",
        "evaluate",
        "train",
        "export",
        "integrations",
        "docs",
        "test",
        "dev",
    } <= set(stated.get_all("Provides-Extra", []))
    (entry_points,) = (name for name in names(wheel) if name.endswith("entry_points.txt"))
    assert "fusili-mir = fusili_mir.cli.console:run" in wheel.root.read(entry_points).decode()


def test_the_oldest_versions_are_those_that_the_project_declares(project: dict[str, Any]) -> None:
    declared = [
        Requirement(line)
        for lines in (
            project["dependencies"],
            *(project["optional-dependencies"][extra] for extra in RUNTIME_EXTRAS),
        )
        for line in lines
    ]
    lowest = {canonicalize_name(each.name): lower_bound(each) for each in declared}
    assert constraints(ROOT / "constraints-lowest.txt") == lowest


def lower_bound(requirement: Requirement) -> Version:
    (bound,) = (each.version for each in requirement.specifier if each.operator == ">=")
    return Version(bound)


def constraints(file: Path) -> dict[str, Version]:
    lines = (line.split("#")[0].strip() for line in file.read_text(encoding="utf-8").splitlines())
    pins = (line.split("==") for line in lines if line)
    return {canonicalize_name(name): Version(version) for name, version in pins}


def test_changelog_and_citation_state_a_release_no_newer_than_the_package() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.+)$", changelog, re.MULTILINE)
    assert headings[0] == "Unreleased"
    (stated,) = re.findall(r"^([\d.]+) \((\d{4}-\d\d-\d\d)\)$", headings[1])
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (citation["version"], str(citation["date-released"])) == stated
    assert Version(citation["version"]) <= Version(fusili_mir.__version__)


def test_the_gpu_extra_brings_cuda_and_cudnn() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    (runtime,) = (Requirement(text) for text in extras["gpu"])
    assert (runtime.name, runtime.extras) == ("onnxruntime-gpu", {"cuda", "cudnn"})
