# Two commands for a fresh machine: `make demo` and `make test`. Each makes the virtual environment it needs.
PYTHON ?= python3

.PHONY: demo test lint clean

demo: .venv-demo/installed
	.venv-demo/bin/fusili-mir pages fusili_mir/examples/hensel_bitte.mxl -o demo --force
	@echo "Look at demo/overlay-001.png: systems, measures, and each staff's note heads in a colour of its own."

test: .venv/installed lint
	.venv/bin/python -m pytest -n 2

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

clean:
	rm -rf .venv .venv-demo demo
