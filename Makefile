# The commands of the project.  Every target starts from `make install`, which makes .venv and everything in it, with the newest Python on
# PATH that is supported.  Another one goes beside it: make test PYTHON=python3.12 VENV=.venv-3.12
PYTHON ?= $(shell tools/find-python)
VENV ?= .venv
BIN := $(VENV)/bin
DEV := $(VENV)-dev/bin

.PHONY: install install-dev chart test e2e e2e-smoke lint fuzz demo soak bench bench-lab bench-clusters bench-bootstrap bench-machines bench-registration bench-scale golden kubeadm-suite lock clean

# What a user has: slipway and the few packages that it needs, in .venv.
install: $(VENV)/.installed

$(VENV)/.installed: requirements.lock pyproject.toml
	$(call make-venv,$(VENV),requirements.lock)

# The same and the developers' tools.  They are apart because a program starts slower with more packages around it.
install-dev: install $(VENV)-dev/.installed

$(VENV)-dev/.installed: requirements-dev.lock pyproject.toml
	$(call make-venv,$(VENV)-dev,requirements-dev.lock)

# Before 3.12 setuptools comes with venv, and a .pth file of its costs every start of every program a few milliseconds.
define make-venv
	$(eval PYTHON := $(or $(PYTHON),$(error no Python to work with)))
	$(PYTHON) -m venv --clear $(1)
	$(1)/bin/pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r $(2)
	$(1)/bin/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	$(1)/bin/pip uninstall --quiet --quiet --yes setuptools
	$(1)/bin/python -m compileall -q src
	touch $@
endef

test: install-dev
	$(DEV)/pytest -n auto

# Real hosts, real kubelets: needs root, systemd-nspawn, debootstrap, swtpm and, while the cache is cold, Go; about an hour with all four
# versions in the cache.  `make e2e ARGS="-k killed -rA"` runs a part of it and shows its tables.
e2e: install-dev
	SLIPWAY_E2E=1 $(DEV)/pytest tests/e2e tests/conformance -p no:xdist $(ARGS)

# One control plane and one worker.
e2e-smoke: install-dev
	SLIPWAY_E2E=1 $(DEV)/pytest tests/e2e -p no:xdist -m smoke

# Every parser of what strangers write, each for a minute and within its limits.  `make fuzz ARGS="gotemplates --seconds 600"` runs one
# for longer; reproducers go to the folder that it names.
fuzz: install-dev
	$(DEV)/python tests/fuzz/run.py $(ARGS)

lint: install-dev
	$(DEV)/ruff check .
	$(DEV)/ruff format --check .
	$(DEV)/mypy
	$(DEV)/lint-imports

# The parts of the Helm chart that follow from the code.
chart: install
	$(BIN)/python tools/chart.py

# A bare-metal cluster made and upgraded on simulated hosts, in under a minute.  `make demo ARGS="--fault host-dead"` passes flags on.
demo: install
	@$(BIN)/slipway demo $(ARGS)

# For an hour twenty simulated clusters are rolled up and down while things go wrong, and what must never be is watched from outside; the
# report is in the folder soak-report.  `make soak ARGS="--minutes 3 --clusters 2 --seed 7"` is a short one that can be repeated,
# `make soak ARGS="--kills 1000 --minutes 90"` kills the manager so often.
soak: install
	@$(BIN)/python -m slipway.simulation.soak $(ARGS)

# Side by side with the real kubeadm, which is built from its Go module: needs Go, once about 3 minutes.  As root also the lab, and
# real clusters of both, for which the real kubeadm's upgrades take most of an hour.
bench: install-dev
	$(BIN)/python -m compileall -q src
	$(BIN)/python tests/bench/node.py
	$(BIN)/python tests/bench/agent.py
	@if [ "$$(id -u)" = 0 ] && command -v systemd-nspawn >/dev/null; then \
	  $(BIN)/python tests/bench/labs.py && $(DEV)/python tests/bench/runtime.py && $(DEV)/python tests/bench/bootstrap.py && \
	  $(DEV)/python tests/bench/machines.py && $(DEV)/python tests/bench/registration.py && \
	  $(DEV)/python tests/bench/clusters.py; \
	else echo "The lab was not measured: that needs root and systemd-nspawn (package systemd-container)."; fi

# The lab's figures: needs root.  `make bench-lab ARGS=--cold` also builds every component from nothing.
bench-lab: install
	$(BIN)/python tests/bench/labs.py $(ARGS)

# Clusters made, grown and upgraded by both: needs root.  `make bench-clusters ARGS="--part making"` leaves the longest part out.
bench-clusters: install-dev
	$(DEV)/python tests/bench/clusters.py $(ARGS)

# The bootstrap data of 1,000 workers, by upstream's manager of Cluster API and by ours, and what the controller runtime alone
# needs: needs root, and Go while the cache has no manager.
bench-bootstrap: install-dev
	$(DEV)/python tests/bench/runtime.py
	$(DEV)/python tests/bench/bootstrap.py $(ARGS)

# A rollout of 1,000 workers, by upstream's core manager and by ours, with machines that are not there: needs root, and Go while the
# cache has no manager.  `make bench-machines ARGS="--part rest"` measures 100 clusters at rest, `--part growth` 100 to 5,000 workers,
# of which a thousand are replaced.
bench-machines: install-dev
	$(DEV)/python tests/bench/machines.py $(ARGS)

# Hosts that register, among few and among many.
bench-registration: install-dev
	$(DEV)/python tests/bench/registration.py $(ARGS)

# A fleet of simulated hosts on a real API server: `make bench-scale ARGS="--part size --hosts 10000 --clusters 200 --rolled 20"`
# measures the cost of size, `--part rest` that of nothing to do, `--part shards` two managers.  Needs root, and for upstream's managers Go
# while the cache has none.  Figures are kept in scale-results.json, and what is there is not measured again.
bench-scale: install-dev
	$(DEV)/python tests/bench/scale.py $(ARGS)

# kubeadm's own black-box suite, unmodified, with the real kubeadm and with slipway in its place, for each minor: needs Go while the
# cache has no suite and no kubeadm, and then half a minute.  `make kubeadm-suite ARGS=v1.35.4` runs one release.
kubeadm-suite: install-dev
	$(DEV)/python tests/kubeadm_suite.py $(ARGS)

# Pins every dependency with its hashes; no address of a package index gets into the files.  The oldest Python needs the most packages,
# so it is the one that chooses them, and there must be a wheel of each for the others.
LOCK := .lock-venv/bin/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-emit-options --no-header pyproject.toml
lock:
	$$(tools/find-python 3.11) -m venv --clear .lock-venv
	.lock-venv/bin/pip install --quiet pip-tools
	$(LOCK) --extra install --output-file requirements.lock
	$(LOCK) --extra install --extra dev --output-file requirements-dev.lock
	for version in $$(tools/find-python --supported); do \
	  .lock-venv/bin/pip install --quiet --disable-pip-version-check --dry-run --target .lock-venv/none --python-version $$version \
	    --only-binary :all: --require-hashes -r requirements-dev.lock || exit 1; \
	done
	rm -rf .lock-venv

# What the real programs do, recorded for the tests: needs root, Go and swtpm, and builds four kubeadms when the cache has none.
golden: install-dev
	tests/oracles/yaml/record.sh
	for recorder in tests/oracles/*_record.py tests/oracles/history/record_types.py; do $(DEV)/python $$recorder || exit 1; done

clean:
	rm -rf $(VENV) $(VENV)-dev
