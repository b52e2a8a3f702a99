# Two commands for a fresh machine: `make demo` and `make test`. Each makes the virtual environment it needs.
PYTHON ?= python3

SYSTEM_PACKAGES = fluidsynth timgm6mb-soundfont libegl1 libgl1 chromium

.PHONY: demo test test-runtime lint docs clean system-packages

demo: .venv-demo/installed
	.venv-demo/bin/fusili-mir demo -o demo --force

test: system-packages .venv/installed lint docs
	.venv/bin/python -m pytest -n 2 --dist loadfile --cov --cov-report=

# The tests that need no torch, in an environment of their own: for any Python that the runtime supports, and with
# CONSTRAINTS=constraints-lowest.txt for the oldest versions of the dependencies that it allows.
test-runtime: .venv-runtime/installed
	.venv-runtime/bin/python -m pytest -n 2 --dist loadfile tests/fusili_mir tests/fusili_integrations fusili_mir \
	    $(foreach command,evaluate export render train,--ignore=tests/fusili_mir/cli/test_$(command).py)

lint: .venv/installed
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy
	.venv/bin/mypy --config-file tests/mypy.toml tests

docs: .venv/installed
	NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict --quiet

.venv-demo/installed: pyproject.toml
	$(PYTHON) -m venv .venv-demo
	.venv-demo/bin/pip install --quiet --editable '.[cpu]'
	@touch $@

.venv-runtime/installed: pyproject.toml $(CONSTRAINTS)
	$(PYTHON) -m venv .venv-runtime
	.venv-runtime/bin/pip install --quiet $(addprefix --constraint ,$(CONSTRAINTS)) \
	    --editable '.[cpu,audio,cluster,collections,integrations,photos,test]'
	@touch $@

.venv/installed: pyproject.toml constraints-test.txt
	$(PYTHON) -m venv .venv
	.venv/bin/pip install --quiet --constraint constraints-test.txt --editable '.[cpu,train,integrations,dev]'
	@touch $@

# The tests synthesise with fluidsynth and a soundfont, draw with skia, which needs libEGL and libGL, and open the viewer in
# Chromium. On a Mac, tests that find no soundfont or no browser are skipped.
system-packages:
	@if [ "$$(uname)" = Darwin ]; then :; \
	elif command -v fluidsynth && ls /usr/share/sounds/sf2/*.sf2 && ldconfig -p | grep libEGL.so.1 \
	    && command -v chromium; then :; \
	elif [ "$$(id -u)" = 0 ]; then apt-get update && apt-get install -y --no-install-recommends $(SYSTEM_PACKAGES); \
	else echo "make test needs some system packages: sudo apt-get install $(SYSTEM_PACKAGES)" >&2; exit 1; \
	fi >/dev/null

clean:
	rm -rf .venv .venv-demo .venv-runtime demo site
