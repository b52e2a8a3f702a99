# Two commands for a fresh machine: `make demo` and `make test`. Each makes the virtual environment it needs.
PYTHON ?= python3

.PHONY: demo test test-runtime test-pythons lint docs clean system-packages

demo: .venv-demo/installed
	.venv-demo/bin/fusili-mir demo -o demo --force

test: system-packages .venv/installed lint docs
	.venv/bin/python -m pytest -n 2 --dist loadfile --cov --cov-report=

# The tests that need no torch, in an environment of their own: for any Python that the runtime supports, and with
# CONSTRAINTS=constraints-lowest.txt for the oldest versions of the dependencies that it allows.
RUNTIME = .venv-runtime/installed-$(subst /,-,$(PYTHON))-$(CONSTRAINTS)

test-runtime: system-packages $(RUNTIME)
	.venv-runtime/bin/python -m pytest -n 2 --dist loadfile tests/fusili_mir tests/fusili_integrations fusili_mir \
	    $(foreach command,evaluate export render train,--ignore=tests/fusili_mir/cli/test_$(command).py)

# A short pass on each Python that is promised and found here: the wheel, the demo, one alignment, one index.
test-pythons:
	$(PYTHON) benchmarks/every_python.py

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

$(RUNTIME): pyproject.toml $(CONSTRAINTS)
	$(PYTHON) -m venv --clear .venv-runtime
	.venv-runtime/bin/pip install --quiet $(addprefix --constraint ,$(CONSTRAINTS)) \
	    --editable '.[cpu,audio,cluster,collections,integrations,photos,test]'
	@touch $@

# laion_clap is missing from Python 3.13 on, and then installed without its dependencies: pyproject.toml says why.
.venv/installed: pyproject.toml constraints-test.txt
	$(PYTHON) -m venv .venv
	.venv/bin/pip install --quiet --constraint constraints-test.txt --editable '.[cpu,train,integrations,dev]'
	.venv/bin/pip install --quiet --no-deps 'laion_clap>=1.1.7'
	@touch $@

# Installs, or names, the packages of system-packages.txt that are missing: each is looked for by itself. On systems
# other than Linux nothing is looked for, and the tests that find no fluidsynth, soundfont or browser are skipped.
system-packages:
	@[ "$$(uname)" = Linux ] || exit 0; \
	missing=; \
	for entry in $$(sed 's/#.*//; s/ *| */|/g' system-packages.txt); do \
	    found=; \
	    for package in $$(echo "$$entry" | tr '|' ' '); do \
	        dpkg-query --show --showformat '$${Status}' "$$package" 2>/dev/null | grep -q ' installed$$' && found=yes; \
	    done; \
	    [ -n "$$found" ] || missing="$$missing $${entry%%|*}"; \
	done; \
	if [ -z "$$missing" ]; then :; \
	elif [ "$$(id -u)" = 0 ]; then \
	    apt-get update >/dev/null && apt-get install -y --no-install-recommends $$missing >/dev/null; \
	else echo "make: the tests need$$missing; install with: sudo apt-get install$$missing" >&2; exit 1; \
	fi

clean:
	rm -rf .venv .venv-demo .venv-runtime demo site
