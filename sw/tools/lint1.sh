#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Lints one module in seconds: sw/tools/lint1.sh TOP [LIST.f] [Name=value ...]
# LIST.f is rtl/<folder>/<folder>.f of the module's folder unless given.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root"
venv=${VENV:-${BUILD:-build}/venv}
sw/tools/setup/setup.sh --build "${BUILD:-build}" --venv "$venv" sim synth
[ -d "${BUILD:-build}/gen" ] || VENV=$venv sw/tools/build.sh wire_gen
exec "$venv/bin/python" sw/tools/lint.py --one "$@"
