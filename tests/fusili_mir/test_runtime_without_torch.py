from __future__ import annotations

import pkgutil
import subprocess
import sys

import fusili_mir

BLOCK = """
import importlib, sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "fusili_training", "fusili_export", "fusili_integrations"):
            raise ImportError(name)
sys.meta_path.insert(0, Refuse())
for name in {names!r}:
    importlib.import_module(name)
import fusili_mir
for name in fusili_mir.__all__:
    getattr(fusili_mir, name)
"""


def test_every_runtime_module_imports_where_torch_cannot_be_imported() -> None:
    names = [module.name for module in pkgutil.walk_packages(fusili_mir.__path__, "fusili_mir.")]
    assert len(names) > 15
    names.remove("fusili_mir.pages.skia_raster")  # imported only where skia-python is installed
    done = subprocess.run([sys.executable, "-c", BLOCK.format(names=names)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(fusili_mir, "align_everything")
    assert "render_pages" in dir(fusili_mir)
