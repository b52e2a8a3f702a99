"""What a release consists of: the files in the wheel, the oldest versions it allows, the version it states."""

from __future__ import annotations

import json
import re
import tarfile
import tomllib
import zipfile
from email.message import Message
from email.parser import BytesParser
from pathlib import Path
from typing import Any

import pytest
import yaml
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder
from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager
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
        *(f"fusili_mir/models/small/{name}" for name in ("manifest.json", "README.md", "LICENSE.txt")),
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


def test_the_wheel_states_command_and_extras(wheel: zipfile.Path) -> None:
    stated = metadata(wheel)
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


def test_the_wheel_states_the_licence_of_all_that_is_in_it_and_has_their_texts(wheel: zipfile.Path) -> None:
    stated = metadata(wheel)
    manifest = json.loads((ROOT / "fusili_mir/models/small/manifest.json").read_text(encoding="utf-8"))
    libraries = (ROOT / "fusili_mir/viewer/third_party/README.md").read_text(encoding="utf-8")
    example = (ROOT / "fusili_mir/demo/files/README.md").read_text(encoding="utf-8")
    parts = {
        "Apache-2.0": "LICENSE",
        manifest["licence"]: "fusili_mir/models/small/LICENSE.txt",
        "OFL-1.1": "fusili_mir/pages/fonts/OFL.txt",
        "BSD-3-Clause": "fusili_mir/viewer/third_party/LICENSE-wavesurfer.txt",
    }
    assert stated["License-Expression"] == " AND ".join(sorted(parts))
    assert set(stated.get_all("License-File", [])) == set(parts.values())
    folder = f"fusili_mir-{fusili_mir.__version__}.dist-info/licenses"
    assert {f"{folder}/{text}" for text in parts.values()} <= names(wheel)
    assert libraries.count("BSD-3-Clause") == len(list((ROOT / "fusili_mir/viewer/third_party").glob("*.js")))
    assert example.count("CC0 1.0 |") == len(list((ROOT / "fusili_mir/demo/files").glob("hensel_bitte.*")))


def test_the_sdist_makes_the_same_wheel(wheel: zipfile.Path, tmp_path: Path) -> None:
    (file,) = SdistBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with tarfile.open(file) as archive:
        for member in archive:  # `extractall` wants a filter on some Pythons, and knows none on others
            target = tmp_path / member.name
            target.parent.mkdir(parents=True, exist_ok=True)
            content = archive.extractfile(member)
            if content is not None:
                target.write_bytes(content.read())
    source = tmp_path / f"fusili_mir-{fusili_mir.__version__}"
    (rebuilt,) = WheelBuilder(str(source)).build(directory=str(tmp_path), versions=["standard"])
    again = zipfile.Path(rebuilt)
    assert names(again) == names(wheel)
    assert [name for name in names(wheel) if again.root.read(name) != wheel.root.read(name)] == []


REPOSITORY = "https://example.org/somebody/fusili-mir"


def built_metadata(monkeypatch: pytest.MonkeyPatch, repository: str) -> ProjectMetadata[Any]:
    monkeypatch.setenv("FUSILI_REPOSITORY", repository)
    return ProjectMetadata(str(ROOT), PluginManager())


def test_links_of_the_readme_lead_to_the_repository_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    core = built_metadata(monkeypatch, f"{REPOSITORY}/").core
    tag = f"v{fusili_mir.__version__}"
    links = re.findall(r"\]\(([^)]+)\)", core.readme)
    assert len(links) > 20
    places = [re.fullmatch(rf"{REPOSITORY}/(blob|tree|raw)/{tag}/([^#]+)(#.*)?", link) for link in links]
    ours = {place[2]: place[1] for place in places if place}
    assert {link for link in links if not link.startswith("https://")} == set()
    assert {path for path in ours if not (ROOT / path).exists()} == set()
    assert ours["docs/images/viewer.png"] == "raw"
    assert ours["integrations/examples"] == "tree"
    assert ours["docs/install.md"] == "blob"
    assert core.urls["Repository"] == REPOSITORY
    assert all(url.startswith(REPOSITORY) for url in core.urls.values())


def test_without_a_repository_the_readme_has_no_links_that_lead_nowhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    core = built_metadata(monkeypatch, "").core
    links = re.findall(r"\]\(([^)]+)\)", core.readme)
    assert links == ["https://github.com/CPJKU/partitura", "https://musescore.org"]
    assert "docs/install.md lists" in core.readme
    assert core.urls == {}


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


def test_every_python_that_is_promised_is_tried_by_the_workflows(project: dict[str, Any]) -> None:
    promised = re.findall(r":: (3\.\d+)", " ".join(project["classifiers"]))
    for workflow, jobs in {"tests": ("everything", "runtime", "windows"), "release": ("try",)}.items():
        content = yaml.safe_load((ROOT / f".github/workflows/{workflow}.yml").read_text(encoding="utf-8"))
        for job in jobs:
            assert content["jobs"][job]["strategy"]["matrix"]["python"] == promised, job
    for page in ("README.md", "docs/install.md"):
        assert f"Python {promised[0]} to {promised[-1]}." in (ROOT / page).read_text(encoding="utf-8")


def test_on_windows_the_workflow_runs_the_tests_of_make_test_runtime_and_its_own() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    workflow = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text(encoding="utf-8"))
    commands = " ".join(step.get("run", "") for step in workflow["jobs"]["windows"]["steps"])

    def found(pattern: str, text: str) -> set[str]:
        (words,) = re.findall(pattern, text)
        return set(words.split())

    extras = r"-runtime.*--editable '\.\[(.+?)\]'"
    assert found(extras, commands) == found(extras, makefile)
    run = found(r"-runtime\S+ -m pytest (.+?)(?:\$|--ignore|\n)", makefile)
    left_out = found(r"-runtime\S+ -m pytest .*foreach command,([\w ]+),", makefile)
    expected = run | {f"--ignore=tests/fusili_mir/cli/test_{name}.py" for name in left_out}
    assert found(r"-m pytest (.+)", commands) == expected | {"tests/test_windows.py"}
