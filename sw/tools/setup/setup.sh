#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs what a make target needs, and nothing when it is there already.
#
#   sw/tools/setup/setup.sh [--build DIR] [--venv DIR] GROUP...
#   groups: sim test synth lint wave mpi fuzz
#
# A group is a list of Debian packages (apt-GROUP.txt) and one of Python packages
# (requirements-GROUP.txt); either may be absent. Debian packages are installed as root or through
# a sudo that asks nothing; otherwise the one command to run is printed, nothing is touched, and
# the exit status is 2. Python packages go to <build>/venv. A group's stamp is written after its last
# step, so a run cut short is taken up again by the next one; two runs at once wait for each other.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
build=$root/build
venv=
groups=()
while [ $# -gt 0 ]; do
  case $1 in
    --build) build=$2; shift 2 ;;
    --venv) venv=$2; shift 2 ;;
    -h|--help) sed -n '3,/^set/{/^set/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"; exit 0 ;;
    *)
      if [ ! -f "$here/apt-$1.txt" ] && [ ! -f "$here/requirements-$1.txt" ]; then
        known=$(cd "$here" && ls *-*.txt | sed 's/^[a-z]*-//;s/\.txt$//' | sort -u | paste -sd' ')
        echo "setup.sh: unknown group '$1'; expected one of: $known" >&2
        exit 2
      fi
      groups+=("$1"); shift ;;
  esac
done
[ ${#groups[@]} -gt 0 ] || groups=(sim)

say() { echo "set-up: $*" >&2; }

list() { # the entries of a list file, comments and blanks taken out
  if [ -f "$1" ]; then sed 's/#.*//' "$1" | awk 'NF { print $1 }'; fi
}

# -- Debian packages -------------------------------------------------------------------------
wanted=()
for g in "${groups[@]}"; do
  while read -r p; do wanted+=("$p"); done < <(list "$here/apt-$g.txt")
done

missing=()
if [ ${#wanted[@]} -gt 0 ] && [ -z "${WEFT_SKIP_APT:-}" ]; then
  if ! command -v dpkg-query >/dev/null; then
    say "this is not a Debian system; install by hand what these Debian packages hold, then set WEFT_SKIP_APT=1:"
    say "  ${wanted[*]}"
    exit 2
  fi
  have=$(dpkg-query -W -f='${Status} ${Package}\n' "${wanted[@]}" 2>/dev/null | awk '$1 != "deinstall" && $3 == "installed" { print $4 }' || true)
  for p in "${wanted[@]}"; do
    grep -qxF -- "$p" <<<"$have" || missing+=("$p")
  done
fi

if [ ${#missing[@]} -gt 0 ]; then
  as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
      as_root=(sudo -n)
    else
      say "Debian packages are missing and this user may not install them. Nothing was changed. As root, run:"
      echo "apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
      exit 2
    fi
  fi
  say "installing ${#missing[@]} Debian packages: ${missing[*]}"
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  opts=(-o DPkg::Lock::Timeout=900 -o Dpkg::Use-Pty=0 -qq -y --no-install-recommends)
  if ! { "${as_root[@]}" apt-get -o DPkg::Lock::Timeout=900 -qq update &&
         "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get "${opts[@]}" install "${missing[@]}"; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    say "apt-get failed (its last lines are above); the packages asked for were: ${missing[*]}"
    exit 2
  fi
fi

# -- Python packages -------------------------------------------------------------------------
stamp_of() { # path of the stamp of group $1: named by what the list says
  local sum
  sum=$(sha256sum <"$here/requirements-$1.txt" | cut -c1-16)
  echo "$venv/.weft-$1-$sum"
}

venv=${venv:-$build/venv}
mkdir -p "$venv"
venv=$(cd "$venv" && pwd)
todo=()
for g in "${groups[@]}"; do
  [ -f "$here/requirements-$g.txt" ] || continue
  [ -e "$(stamp_of "$g")" ] || todo+=("$g")
done
[ ${#todo[@]} -gt 0 ] || exit 0

exec 9>"$venv/../.$(basename "$venv").lock"
flock 9
# Debian's own interpreter by default: another python3 found first in PATH may lack venv, or go away.
python=${WEFT_PYTHON:-/usr/bin/python3}
[ -x "$python" ] || python=python3
if [ ! -e "$venv/.weft-base" ]; then
  say "making the Python environment $venv"
  "$python" -m venv --clear "$venv" >&2
  touch "$venv/.weft-base"
fi
for g in "${todo[@]}"; do
  stamp=$(stamp_of "$g")
  [ ! -e "$stamp" ] || continue # another run has just made it
  say "installing Python packages for '$g'"
  rm -f "$venv/.weft-$g-"*
  if ! "$venv/bin/python" -m pip install --disable-pip-version-check --quiet -r "$here/requirements-$g.txt" >&2; then
    say "pip could not install $here/requirements-$g.txt; the next call tries again"
    exit 2
  fi
  touch "$stamp"
done
