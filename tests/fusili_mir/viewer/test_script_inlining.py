from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from example_browser import NODE

import fusili_mir
from fusili_mir.viewer.script_inlining import inline_modules


def write(folder: Path, **modules: str) -> Path:
    for name, source in modules.items():
        (folder / f"{name}.js").write_text(source)
    return folder


def test_inlined_modules_do_what_modules_do(tmp_path: Path) -> None:
    write(
        tmp_path,
        a="export const LEAST = 2;\nconst own = 3;\nexport function more(x) {\n  return x + LEAST + own;\n}\n",
        b='import { LEAST } from "./a.js";\nconst own = 10;\nexport class Two {\n  get = () => LEAST * own;\n}\n',
        main='import { more } from "./a.js";\nimport { Two } from "./b.js";\nprint(more(1), new Two().get());\n',
    )
    done = subprocess.run(
        [NODE, "-"],
        input="const print = console.log;" + inline_modules(tmp_path, "main"),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "6 20\n"


def test_what_cannot_be_inlined_is_refused(tmp_path: Path) -> None:
    write(tmp_path, main='import * as a from "./a.js";\n')
    with pytest.raises(ValueError, match=r"main\.js: 'import \* as a"):
        inline_modules(tmp_path, "main")


def test_modules_that_import_each_other_are_refused(tmp_path: Path) -> None:
    write(tmp_path, a='import { b } from "./b.js";\n', b='import { a } from "./a.js";\n')
    with pytest.raises(ValueError, match="imports itself by way of a, b"):
        inline_modules(tmp_path, "a")


def test_every_module_of_the_page_is_part_of_it() -> None:
    folder = Path(fusili_mir.__file__).parent / "viewer" / "page"
    script = inline_modules(folder, "main")
    for module in folder.glob("*.js"):
        assert f"const ${module.stem} = " in script
