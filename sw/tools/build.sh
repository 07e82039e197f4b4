#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Configures (when something about it changed) and builds CMake targets:
#
#   sw/tools/build.sh [-k] TARGET...      -k: go on after an error with what does not depend on it
#
# From the environment: BUILD (build), VENV ($BUILD/venv), CXX, VERILATOR, CMAKE_ARGS, JOBS. Two calls
# on one build directory wait for each other. Shows progress only on a terminal.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root"
mkdir -p "${BUILD:=build}"
BUILD=$(cd "$BUILD" && pwd)
VENV=${VENV:-$BUILD/venv}
case $VENV in /*) ;; *) VENV=$root/$VENV ;; esac
keep=()
if [ "${1:-}" = -k ]; then keep=(-k 0); shift; fi

dir=$BUILD/cmake
mkdir -p "$dir"
exec 8>"$BUILD/.build.lock"
if ! flock -n 8; then
  echo "waiting for another build in $BUILD" >&2
  flock 8
fi

args=(-S sw -B "$dir" -G Ninja "-DWEFT_BUILD=$BUILD" "-DWEFT_VENV=$VENV" "-DWEFT_VERILATOR=${VERILATOR:-}")
[ -z "${CXX:-}" ] || args+=("-DCMAKE_CXX_COMPILER=$CXX")
# shellcheck disable=SC2206  # CMAKE_ARGS is a list of words
args+=(${CMAKE_ARGS:-})
fresh=()
if [ ! -f "$dir/build.ninja" ] || [ "$(cat "$dir/.args" 2>/dev/null)" != "${args[*]}" ]; then
  [ ! -f "$dir/CMakeCache.txt" ] || fresh=(--fresh)
  if ! cmake "${fresh[@]}" "${args[@]}" >"$dir/configure.log" 2>&1; then
    cat "$dir/configure.log" >&2
    exit 1
  fi
  printf '%s' "${args[*]}" >"$dir/.args"
fi

command=(ninja -C "$dir" "${keep[@]}" -j "${JOBS:-$(nproc)}" "$@")
if [ -t 1 ]; then exec "${command[@]}"; fi
command+=(--quiet)
"${command[@]}" 2>&1 | sed -u '/^-- \(GLOB mismatch\|Configuring done\|Generating done\|Build files have\)\|^ninja: no work to do\|^ninja: Entering/d'
