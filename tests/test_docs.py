"""What docs/ and the pages at the root show is true: Python runs, commands exist, links lead somewhere."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import shutil
import zipfile
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
import soundfile
from PIL import Image

import fusili_mir
from fusili_mir.cli.main import main
from fusili_mir.demo.example import load_example
from fusili_mir.model.bundle import AudioSpec, ImageSpec, Manifest, default_bundle
from fusili_mir.output.alignment_files import ALIGNMENT_FORMATS

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))
AT_THE_ROOT = sorted(ROOT.glob("*.md"))
RUN = [  # the README: test_readme.py
    f"docs/{name}.md"
    for name in ("quick-start", "scores", "pages", "align", "pitch", "point", "outputs", "bundle")
]
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)")


def code_blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the pages name: score, scan and recording of the demo's song, and the installed bundle."""
    folder, example = tmp_path_factory.mktemp("docs"), load_example()
    shutil.copytree(default_bundle().folder, folder / "bundle")
    with zipfile.ZipFile(example.score) as archive:
        (name,) = (name for name in archive.namelist() if not name.startswith("META-INF"))
        (folder / "piece.musicxml").write_bytes(archive.read(name))
    with Image.open(example.page) as page:
        page.convert("L").save(folder / "scan.pdf", resolution=200)
    rate_hz = soundfile.info(example.recording).samplerate
    samples, _ = soundfile.read(example.recording, frames=30 * rate_hz)
    for name in ("recording.wav", "recording.mp3"):
        soundfile.write(folder / name, samples, rate_hz)
    return folder


@pytest.mark.parametrize("page", RUN)
def test_the_python_of_a_page_runs(
    page: str, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in files.iterdir():
        (tmp_path / file.name).symlink_to(file)
    monkeypatch.chdir(tmp_path)
    blocks = code_blocks((ROOT / page).read_text(encoding="utf-8"), "python")
    assert blocks
    code = compile("\n".join(blocks), page, "exec")
    exec(code, {"__name__": "__main__"})


def shown_commands(text: str) -> Iterator[list[str]]:
    """The words of every line of code, indented or fenced, that calls the command line."""
    for line in re.sub(r"\\\n\s*", " ", text).splitlines():
        called = re.match(r"(?: {4,}|\$ |)(?:for [^;]*; do )?(fusili-mir [a-z].*)", line)
        if called:
            yield shlex.split(called[1].split("; done")[0], comments=True)


@pytest.mark.parametrize("page", [*AT_THE_ROOT, *PAGES], ids=lambda page: page.name)
def test_the_commands_of_a_page_and_their_options_exist(
    page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _, command, *words in shown_commands(page.read_text(encoding="utf-8")):
        with pytest.raises(SystemExit) as ended:
            main([command, "--help"])
        assert ended.value.code == 0, command
        known = set(re.findall(r"(?<![\w-])--?[a-z][a-z0-9-]*", capsys.readouterr().out))
        options = {word.strip("[]").split("=")[0] for word in words if re.match(r"\[?-{1,2}[a-z]", word)}
        assert options <= known, f"fusili-mir {command} {shlex.join(words)}"


@pytest.mark.parametrize("page", AT_THE_ROOT, ids=lambda page: page.name)
def test_the_links_of_a_page_at_the_root_lead_to_files(page: Path) -> None:  # mkdocs checks those in docs/
    missing = [link for link in LINK.findall(page.read_text(encoding="utf-8")) if not (ROOT / link).exists()]
    assert not missing


def test_the_page_on_output_files_has_a_row_for_each_format() -> None:
    text = (ROOT / "docs/outputs.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"^\| `--format` .*\n\|[ -|]*\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE) == list(ALIGNMENT_FORMATS)


def test_the_page_on_bundles_names_each_field_of_a_manifest() -> None:
    text = (ROOT / "docs/bundle.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)
    stated = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert stated == {each.name for table in (Manifest, ImageSpec, AudioSpec) for each in fields(table)}


def test_the_model_card_states_the_figures_and_the_sources_of_the_manifest() -> None:
    folder = ROOT / "fusili_mir/models/small"
    card = " ".join((folder / "README.md").read_text(encoding="utf-8").split())
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    quality, data = manifest["quality"], manifest["training_data"]
    for kind, least_ms in {"onsets": 100, "quartets": 100, "human": 50}.items():
        for way in (f"{kind}_with_score", f"{kind}_from_images"):
            shares = (f"{100 * quality[way][f'within_{ms}_ms']:.1f}" for ms in (least_ms, 250))
            assert f"| {quality[way]['median_ms']:.1f} ms, {' / '.join(shares)} % |" in card, way
    assert f"{100 * quality['local_top1']['own_grid']:.1f} % of the frames" in card
    for count in (
        data["pieces"],
        data["segments"],
        data["first_model"]["pieces"],
        quality["onsets_with_score"]["notes"],
    ):
        assert f"{count:,}" in card
    for command in quality["commands"][:3]:
        assert command in card
    for name in (
        "Fryderyk Chopin Institute",
        "Headroom Piano by Bengt Nilsson",
        "Mutopia",
        "VSCO 2 Community Edition",
    ):
        assert name in data["attribution"]
        assert name in card


def test_every_public_name_is_in_the_reference() -> None:
    spec = importlib.util.spec_from_file_location("generated_pages", ROOT / "docs/generated_pages.py")
    assert spec is not None
    assert spec.loader is not None
    hooks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hooks)
    described = [
        name for page in hooks.reference_pages().values() for name in re.findall(r"^::: (\S+)$", page, re.M)
    ]
    assert len(described) == len(set(described))
    for name in fusili_mir.__all__:
        assert [each.rpartition(".")[2] for each in described].count(name) == 1
