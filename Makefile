# make demo    a few queries over the tables in examples/, with the packaged model; with
#              MODEL=openai:NAME@http://HOST:PORT/v1 on a server, and without compiling anything
# make check   style, types and the fast tests, in a minute and a half once installed
# make test    style, types and the tests, of the package as it is installed, in eight minutes of two cores
# make long    the tests of more than three seconds each: kills, threads, processes, local weights
# make nightly all tests with twice the random cases; some suites with many more
# make bench   the benchmarks that finish in minutes
# make lock    write the versions in .venv into requirements-dev.lock
# make docs    the site of the documentation, in build/site
# make clean   remove what these targets made
#
# The first run makes .venv and installs; later runs install again only if a source has changed. llama.cpp
# comes as a wheel and nothing is compiled. BUILD=compile compiles it for this machine (C++ compiler and CMake;
# about 14 minutes of one core), and so do CMAKE_ARGS of your own, such as those for a GPU: see
# docs/install.md. VENV=folder uses another virtual environment.

VENV = .venv
BIN = $(VENV)/bin

# The first of these that runs and is new enough.
PYTHONS = python3.14 python3.13 python3.12 python3.11 python3
IS_NEW_ENOUGH = import sys; sys.exit(sys.version_info < (3, 11))

# llama.cpp's AMX kernels end the process on some machines (ggml-org/llama.cpp issue 20824): none, where the
# compiler knows them.
NO_AMX = $(shell $(CXX) -mno-amx-int8 -E -x c++ /dev/null >/dev/null 2>&1 && \
	echo -DCMAKE_C_FLAGS=-mno-amx-int8 -DCMAKE_CXX_FLAGS=-mno-amx-int8)

# Whether llama.cpp is prebuilt or compiled here. There are wheels of it for these systems.
PREBUILT_FOR = Linux-x86_64 Linux-aarch64 Darwin-arm64
ifndef BUILD
BUILD := $(if $(CMAKE_ARGS),compile,$(if $(filter $(PREBUILT_FOR),$(shell uname -s)-$(shell uname -m)),prebuilt,compile))
endif

# What llama-cpp-python builds and BlendFusion does not use. A user's own setting wins.
CMAKE_ARGS ?= -DGGML_NATIVE=ON -DLLAMA_BUILD_TOOLS=OFF -DLLAMA_BUILD_TESTS=OFF \
	-DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_SERVER=OFF -DMTMD_VIDEO=OFF \
	-DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF $(NO_AMX)
CMAKE_BUILD_PARALLEL_LEVEL ?= $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)

# As many workers as cores; all tests with local models run in one of them (tests/conftest.py). A worker
# that ends with its test ends the run: pytest-xdist would give the same test to the next worker.
PARALLEL = $(BIN)/pytest -q -n auto --dist loadgroup --max-worker-restart=0 $(AMOUNT)
# Not 1,000 random cases a suite, but so many. Some then take longer than a test may at other times.
AMOUNT = $(if $(CASES),--cases $(CASES) -o faulthandler_timeout=14400)
# The files of tests that run alone, and of long ones: to collect all others takes half a minute.
ALONE = $(BIN)/pytest -q $(AMOUNT) $(shell grep -rl --include='test_*.py' 'mark\.alone' tests)
LONG = $(shell grep -rlE --include='test_*.py' 'mark\.long|long_after' tests)
FAST = not slow and not long and not local
FAST_TESTS = tests/planner tests/udfs tests/models/stores/test_cache_key.py tests/test_*.py
# Tests that pytest has compiled are kept for its next process, which collects them in half the time.
unexport PYTHONDONTWRITEBYTECODE

PACKAGE = engine planner udfs models native examples
SOURCES = pyproject.toml $(wildcard setup.py) \
	$(shell find $(PACKAGE) -name '*.py' -o -name '*.pyi' -o -name '*.txt' -o -name '*.css' -o -name '*.html' -o -name '*.js' -o -name '*.csv' -o -name '*.jsonl' -o -name '*.cpp' -o -name '*.h')

.PHONY: demo check test long nightly random install style types stubs lock bench docs clean

ifeq ($(MODEL),)
demo: $(VENV)/installed
	$(BIN)/blendfusion demo
else
demo: $(VENV)/installed-plain
	$(BIN)/blendfusion demo --model '$(MODEL)'
endif

check: style types
	$(PARALLEL) -m "$(FAST)" $(FAST_TESTS)

test: style types
	$(PARALLEL) -m "not alone and not long"
	$(ALONE) -m "alone and not long"

long: install
	$(PARALLEL) -m "long and not alone" $(LONG)
	$(ALONE) -m "long and alone"

nightly: random
	$(MAKE) test long CASES=2000

random: install $(VENV)/compiled $(VENV)/dbt $(VENV)/schedulers $(VENV)/lowest
	BLENDFUSION_COMPILED=$(CURDIR)/$(VENV)/compiled/llama_cpp/lib $(BIN)/pytest -q -o faulthandler_timeout=14400 \
		--cases 2000 tests/models/services/llama/test_prebuilt_equals_compiled.py
	$(PARALLEL) -o faulthandler_timeout=14400 --cases 50000 -m "slow or not local" tests/test_random_queries.py tests/engine/datafusion/test_bridge_catalogue.py tests/security
	$(PARALLEL) -o faulthandler_timeout=14400 --cases 100000 tests/planner/test_rows_of_all_answers.py
	$(BIN)/pytest -q -o faulthandler_timeout=14400 --cases 200000 tests/engine/datafusion/test_interrupt_anywhere.py tests/planner/test_value_bound.py
	$(BIN)/pytest -q -o faulthandler_timeout=14400 -m "" --cases 2000 tests/models/services/llama/test_local_independence.py \
		tests/models/services/decisions/test_decision_faults.py \
		tests/models/services/decisions/test_decision_promises.py tests/engine/services/evaluate/test_improve.py tests/engine/services/evaluate/test_interval_coverage.py
	$(BIN)/pytest -q -o faulthandler_timeout=14400 -m "" --cases 100000 tests/models/services/http/test_fused_requests.py
	BLENDFUSION_DBT=$(CURDIR)/$(VENV)/dbt $(BIN)/pytest -q tests/engine/test_dbt.py
	BLENDFUSION_SCHEDULERS=$(CURDIR)/$(VENV)/schedulers $(BIN)/pytest -q -m "" tests/engine/test_schedulers.py
	$(VENV)/lowest/bin/pytest -q -n auto --dist loadgroup --max-worker-restart=0 -m "$(FAST)" $(FAST_TESTS)
	BLENDFUSION_SUITES=1 $(BIN)/pytest -q -o faulthandler_timeout=14400 tests/engine/services/dbapi/test_sqlalchemy_suite.py
	$(BIN)/pytest -q -o faulthandler_timeout=14400 -m "" --cases 20000 tests/engine/services/sources/test_pushed_filters.py tests/engine/services/sources/test_pushed_values.py

$(VENV)/dbt: | $(BIN)/python
	$(BIN)/python -m pip install --target $@ 'dbt-core>=1.10,<1.11'

$(VENV)/schedulers: | $(BIN)/python
	$(BIN)/python -m pip install --target $@/dagster dagster
	$(BIN)/python -m pip install --target $@/airflow apache-airflow-task-sdk

# The oldest versions that are allowed.
$(VENV)/lowest: $(SOURCES) | $(BIN)/python
	rm -rf build $@
	$(BIN)/python -m venv $@
	$(BIN)/python tests/support/lowest_versions.py > $@/versions.txt
	$@/bin/python -m pip install -c $@/versions.txt '.[dev]'
	touch $@

# llama.cpp with the kernels of the prebuilt library, to compare their answers.
$(VENV)/compiled: | $(BIN)/python
	CMAKE_ARGS='$(subst -DGGML_NATIVE=ON,-DGGML_NATIVE=OFF,$(CMAKE_ARGS))' $(BIN)/python -m pip install \
		--target $@ --no-cache-dir --no-deps 'llama-cpp-python>=0.3.36,<0.4'

install: $(VENV)/installed-dev

style: install
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: install
	$(BIN)/mypy --strict -p blendfusion
	$(if $(wildcard benchmarks/bench_*.py),$(BIN)/mypy --strict $(wildcard benchmarks/bench_*.py))

stubs: install
	$(BIN)/python -m blendfusion.udfs.register.stub > udfs/register/python_functions.pyi

lock: install
	{ sed -n '/^#/p' requirements-dev.lock; $(BIN)/python -m pip freeze --exclude blendfusion | grep ==; } > requirements-dev.new
	mv requirements-dev.new requirements-dev.lock

bench: install
	$(BIN)/pytest --benchmark-only -o python_files='bench_*.py' benchmarks

docs: install
	@mkdir -p build
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["docs"], sep="\n")' > build/docs.txt
	$(BIN)/python -m pip install -q -r build/docs.txt
	$(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Before pip says so in a hundred lines. Where CMake is missing, pip brings it.
define compiler
@command -v $(CXX) >/dev/null || { \
		echo "BUILD=compile compiles llama.cpp, and there is no C++ compiler ($(CXX))." >&2; \
		echo "Install one (Debian, Ubuntu: apt-get install build-essential), or use a server without compiling:" >&2; \
		echo "  make demo MODEL=openai:NAME@http://HOST:PORT/v1" >&2; \
		exit 1; }
endef

# pip keeps no wheel of these: it would take one for the other.
LLAMA = $(BIN)/python -m pip install --no-cache-dir --force-reinstall --no-deps

# An older pip, such as that of Debian 12, cannot read prebuilt.txt.
$(VENV)/llama-prebuilt: prebuilt.txt | $(BIN)/python
	$(BIN)/python -m pip install -q 'pip>=23.1'
	$(LLAMA) -r prebuilt.txt
	@rm -f $(VENV)/llama-compile
	touch $@

$(VENV)/llama-compile: | $(BIN)/python
	$(compiler)
	CMAKE_ARGS='$(CMAKE_ARGS)' CMAKE_BUILD_PARALLEL_LEVEL=$(CMAKE_BUILD_PARALLEL_LEVEL) \
		$(LLAMA) 'llama-cpp-python>=0.3.36,<0.4'
	@rm -f $(VENV)/llama-prebuilt
	touch $@

# pip reuses what it finds in build/, so a module that is gone from the sources would come back.
$(VENV)/installed: $(SOURCES) $(VENV)/llama-$(BUILD) | $(BIN)/python
	rm -rf build
	$(BIN)/python -m pip install '.[local]'
	touch $@

$(VENV)/installed-dev: $(SOURCES) $(VENV)/llama-$(BUILD) | $(BIN)/python
	rm -rf build
	$(BIN)/python -m pip install '.[local,dev]'
	touch $(VENV)/installed $@

$(VENV)/installed-plain: $(SOURCES) | $(BIN)/python
	rm -rf build
	$(BIN)/python -m pip install .
	touch $@

$(BIN)/python:
	@for python in $(PYTHONS); do \
		if $$python -c '$(IS_NEW_ENOUGH)' 2>/dev/null; then \
			echo "$$python -m venv $(VENV)"; \
			exec $$python -m venv $(VENV); \
		fi; \
	done; \
	echo "BlendFusion needs Python 3.11 or newer; none of $(PYTHONS) is." >&2; \
	echo "Install one, or name it: make PYTHONS=/path/to/python3" >&2; \
	exit 1
