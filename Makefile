# SPDX-License-Identifier: Apache-2.0
#
# The front door. `make help` lists what there is. Everything a target needs is installed or built by
# it (sw/tools/setup/setup.sh); a second call costs nothing.

BUILD ?= build
VENV  ?= $(BUILD)/venv
JOBS  ?= $(shell nproc)
T     ?=
B     ?=
F     ?=
M     ?=
ARGS  ?=

# make's own default for CXX does not count as a wish.
ifeq ($(origin CXX),default)
  CXX :=
endif
# T may hold any character a test name holds, so recipes read it from the environment.
export T BUILD VENV JOBS CXX VERILATOR CMAKE_ARGS SEED WAVES

SETUP  := @sw/tools/setup/setup.sh --build '$(BUILD)' --venv '$(VENV)'
PYTHON := $(VENV)/bin/python

EVAL := sw/scenarios/eval
comma := ,

.PHONY: help sim eval eval-full comply test test-long mutants fuzz formal lint synth wave bench format docs clean gen weft

help:
	@echo 'Weft: an open collective-offload NIC'
	@echo
	@echo '  make sim                     a training iteration on a cluster of simulated nodes'
	@echo '  make sim ARGS="--loss 0.1"   the same, with flags of `$(BUILD)/weft sim --help`'
	@echo '  make eval                    Weft beside RoCEv2, bounds and goals, into docs/evaluation.md'
	@echo '  make eval-full               the same with ten seeds for every body and point'
	@echo '  make test                    every test'
	@echo '  make test T=common           one program; T="fifo: data*" matches names of tests'
	@echo '  make test T=common SEED=7 WAVES=1   with this seed, writing $(BUILD)/waves/*.fst'
	@echo '  make test-long               what is too slow for every day, tests/long.toml; T=<name>: one of them'
	@echo '  make formal                  model-check the transport, the long searches (M=NO_W2: one run, told in words); prove the reducer'
	@echo '  make mutants T=tx            put known mistakes into copies of the sources: do the tests find them?'
	@echo '  make fuzz                    libFuzzer on the parser and the endpoint, a minute each'
	@echo '  make wave T="fifo: data*"     open the waves of a test in GTKWave'
	@echo '  make lint                    Verilator -Wall and slang on every module, formats, layout'
	@echo '  make synth                   LUT, FF, BRAM and levels of every block beside the baseline'
	@echo '  make synth B=weft_fifo       one block;  REBASELINE=1 accepts what it measures'
	@echo '  make comply                  scripted exchanges against the reference and the RTL (docs/compliance.md)'
	@echo '  make bench                   the figures of merit beside their goals'
	@echo '  make format                  format the C++ (F=path: only this; SV=1: SystemVerilog too)'
	@echo '  make docs                    register reference into $(BUILD)/gen/html, links checked'
	@echo '  make gen                     generated packages and headers into $(BUILD)/gen'
	@echo '  make clean                   delete $(BUILD) but the Python environment'
	@echo
	@echo 'Overridable: BUILD=dir VENV=dir JOBS=n CXX=clang++ VERILATOR=/path CMAKE_ARGS="-DWEFT_NATIVE=OFF"'

weft:
	$(SETUP) sim
	@sw/tools/build.sh weft $(if $(findstring --waves,$(ARGS)),weft_fst)

sim: weft
	@'$(BUILD)/weft' sim $(ARGS)

# With ARGS: one run. Without: every script against every body here, and the results into docs/compliance.md.
comply: weft
	@$(if $(ARGS),'$(BUILD)/weft' comply $(ARGS),'$(PYTHON)' tests/compliance/test_compliance.py --fix)

# A scenario with `quick = false` takes too long for every day.
eval eval-full: scenarios = $(if $(filter eval-full,$@),$(wildcard $(EVAL)/*.toml),$(shell grep -L '^quick = false' $(EVAL)/*.toml))
eval eval-full:
	$(SETUP) sim eval
	@sw/tools/build.sh weft
	@'$(BUILD)/weft' eval $(foreach f,$(scenarios),--scenario $(f)) $(if $(filter eval-full,$@),--seed 1$(comma)2$(comma)3$(comma)4$(comma)5$(comma)6$(comma)7$(comma)8$(comma)9$(comma)10) \
	  --threads $(JOBS) --json '$(BUILD)/eval.json' --csv '$(BUILD)/eval.csv' --plots '$(BUILD)/eval' $(ARGS)
	@'$(PYTHON)' sw/tools/eval_page.py '$(BUILD)/eval.json' docs/evaluation.md '$(BUILD)/eval'

gen:
	$(SETUP) sim
	@sw/tools/build.sh wire_gen

test:
	$(SETUP) sim test synth eval
	@'$(PYTHON)' sw/tools/runtests.py "$$T"

test-long:
	$(SETUP) sim test synth eval
	@'$(PYTHON)' sw/tools/testlong.py "$$T"

formal:
	$(SETUP) sim test synth
	@'$(PYTHON)' tests/formal/formal.py $(M)
	$(if $(M),,@sw/tools/build.sh wire_gen)
	$(if $(M),,@'$(PYTHON)' tests/formal/prove.py)

mutants:
	$(SETUP) sim test
	@'$(PYTHON)' sw/tools/mutate.py "$$T" $(if $(M),'$(M)')

fuzz:
	$(SETUP) sim fuzz
	@sw/tools/build.sh wire_gen
	@'$(PYTHON)' sw/tools/fuzz.py $(T)

wave:
	$(SETUP) sim test synth $(if $(DISPLAY),wave)
	@'$(PYTHON)' sw/tools/wave.py $(if $(NEWVIEW),--new-view '$(NEWVIEW)') "$$T"

lint:
	$(SETUP) sim synth lint
	@sw/tools/build.sh wire_gen
	@'$(PYTHON)' sw/tools/lint.py

synth:
	$(SETUP) sim synth
	@sw/tools/build.sh wire_gen
	@'$(PYTHON)' sw/tools/synth/synth.py $(if $(REBASELINE),--rebaseline) $(B)

bench:
	$(SETUP) sim test
	@sw/tools/build.sh weft all_benches
	@'$(PYTHON)' sw/tools/bench.py $(B)

format:
	$(SETUP) sim lint
	@'$(PYTHON)' sw/tools/lint.py --fix $(if $(SV),--sv) $(F)

docs:
	$(SETUP) sim
	@sw/tools/build.sh wire_gen
	@'$(PYTHON)' sw/tools/docs.py

clean:
	@if [ -d '$(BUILD)' ]; then find '$(BUILD)' -mindepth 1 -maxdepth 1 ! -name venv ! -name '.venv.lock' -exec rm -rf {} +; fi
