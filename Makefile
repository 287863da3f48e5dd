# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: help demo test check format bench bench-checkpoint bench-sharing soak clean

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

$(VENV)/.ready: pyproject.toml hatch_build.py src/wattline/checkpoint/codecs/kernel.c
	@echo "setting up $(VENV) (once; about a minute)" >&2
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) install --upgrade 'pip>=25.1'
	@$(PIP) install --editable '.[control,plots,postgres,s3,server,snmp]'
	@touch $@

$(VENV)/.ready-dev: $(VENV)/.ready
	@$(PIP) install --group dev
	@touch $@

demo: $(VENV)/.ready  ## a pipeline end to end, with a cooling fault, on this machine
	@$(BIN)/python examples/tiny-lm/demo.py

test: check  ## the whole test suite, quality checks included
	@ci/install-engines
	@ci/tests $(BIN)/pytest

check: $(VENV)/.ready-dev  ## format, lint, types, import rules, dead code, dependencies
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/vulture
	$(BIN)/deptry src

format: $(VENV)/.ready-dev  ## rewrite the sources in the house style
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.ready-dev  ## the figures in docs/benchmarks.md
	$(BIN)/python -m bench
	$(BIN)/python -m bench.validation
	$(BIN)/python -m bench.twin
	$(BIN)/python -m bench.estimates
	$(BIN)/python -m bench.readings
	$(BIN)/python -m bench.stores
	$(BIN)/python -m bench.submits

bench-checkpoint: $(VENV)/.ready-dev  ## checkpoints beside ZipNN, borg, torch, rclone and rsync; some of it needs root
	$(BIN)/python -m bench.checkpoint_sizes
	$(BIN)/python -m bench.checkpoint_stops
	$(BIN)/python -m bench.checkpoint_faults
	$(BIN)/python -m bench.cadence
	$(BIN)/python -m bench.poor_link

bench-sharing: $(VENV)/.ready-dev  ## teams, power, carbon, ETAs, placement against the best there is
	$(BIN)/python -m bench.fairness
	$(BIN)/python -m bench.power_sharing
	$(BIN)/python -m bench.carbon
	$(BIN)/python -m bench.cloud_burst
	$(BIN)/python -m bench.eta
	$(BIN)/python -m bench.exact_placement
	$(BIN)/python -m bench.large_decisions
	$(BIN)/python -m bench.scaling
	$(BIN)/python -m bench.capped_fleet
	$(BIN)/python -m bench.ramps

soak: $(VENV)/.ready-dev  ## 200 random kill -9 points; 10,000 simulated fleets; 50 WAN cuts and a siege, which need root
	$(BIN)/python bench/kill_points.py --points 200
	WATTLINE_API_EXAMPLES=200 $(BIN)/pytest -q tests/api/test_openapi.py
	$(BIN)/python -m bench.site_failures --seeds 10000
	$(BIN)/python -m bench.wan_cut --timings 50
	$(BIN)/python -m bench.siege --minutes 10 --seed 1

clean:  ## remove what make made
	rm -rf $(VENV) .wattline .mypy_cache .pytest_cache .ruff_cache .hypothesis
