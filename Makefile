# Two commands for a fresh machine: `make demo` and `make test`. Each makes the virtual environment it needs.
PYTHON ?= python3

SYSTEM_PACKAGES = fluidsynth timgm6mb-soundfont libegl1 libgl1

.PHONY: demo test lint clean system-packages

demo: .venv-demo/installed
	.venv-demo/bin/fusili-mir demo -o demo --force

test: system-packages .venv/installed lint
	.venv/bin/python -m pytest -n 2 --dist loadfile

lint: .venv/installed
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy

.venv-demo/installed: pyproject.toml
	$(PYTHON) -m venv .venv-demo
	.venv-demo/bin/pip install --quiet --editable '.[cpu]'
	@touch $@

.venv/installed: pyproject.toml constraints-test.txt
	$(PYTHON) -m venv .venv
	.venv/bin/pip install --quiet --constraint constraints-test.txt --editable '.[cpu,train,integrations,dev]'
	@touch $@

# The tests synthesise with fluidsynth and a soundfont, and draw with skia, which needs libEGL and libGL.
system-packages:
	@if command -v fluidsynth && ls /usr/share/sounds/sf2/*.sf2 && ldconfig -p | grep libEGL.so.1; then :; \
	elif [ "$$(id -u)" = 0 ]; then apt-get update && apt-get install -y --no-install-recommends $(SYSTEM_PACKAGES); \
	else echo "make test needs some system packages: sudo apt-get install $(SYSTEM_PACKAGES)" >&2; exit 1; \
	fi >/dev/null

clean:
	rm -rf .venv .venv-demo demo
