#!/usr/bin/env bash
# scripts/sysroot.sh [--suite SUITE] [--alone] ARCH DIR PACKAGE...
#
# Unpacks Debian packages of any architecture, with everything they depend on, into DIR. The machine's own package state and apt
# sources are neither changed nor needed: Debian's multiarch cannot hold these packages side by side, and a private apt state can.
#
#   ARCH     amd64, arm64, armhf, i386 ...
#   --suite  a suite of the machine's own Debian mirror, preferred to the one the machine runs
#   --alone  only the packages named, without dependencies (for static tools)
#
# A second run with the same arguments returns at once. DIR then serves as qemu's -L and as CMAKE_FIND_ROOT_PATH.
set -euo pipefail

suite= alone=
while [[ ${1-} == --* ]]; do
  case $1 in
    --suite) suite=$2; shift 2 ;;
    --alone) alone=1; shift ;;
    *) echo "sysroot.sh: unknown option $1" >&2; exit 2 ;;
  esac
done
if (( $# < 3 )); then sed -n '2,12s/^# \{0,1\}//p' "$0" >&2; exit 2; fi
arch=$1 root=$(realpath -m "$2"); shift 2

release=$(. /etc/os-release && echo "${VERSION_CODENAME:?}")
suite=${suite:-$release}
stamp="$suite $arch $*"
if [[ -f $root/.unpacked && $(< "$root/.unpacked") == "$stamp" ]]; then exit 0; fi

site=$(apt-get indextargets --format '$(SITE) $(RELEASE) $(CODENAME)' | awk -v r="$release" '$2 == r || $3 == r { print $1; exit }')
if [[ -z $site ]]; then echo "sysroot.sh: apt on this machine has no source for $release" >&2; exit 1; fi

mkdir -p "$(dirname "$root")"
state=$(mktemp -d "$(dirname "$root")/apt.XXXXXX")
trap 'rm -rf "$state"' EXIT
mkdir -p "$state"/{lists/partial,cache/archives/partial}
for s in $(printf '%s\n' "$release" "$suite" | sort -u); do  # a backport's dependencies are mostly the release's
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $site $s main"
done > "$state/sources.list"
: > "$state/status"
apt=(apt-get -qq -oAPT::Default-Release="$suite" -oAPT::Architecture="$arch" -oAPT::Architectures="$arch" -oDir::State::lists="$state/lists"
     -oDir::State::status="$state/status" -oDir::Etc::sourcelist="$state/sources.list" -oDir::Etc::sourceparts=/dev/null
     -oDir::Cache="$state/cache" -oAPT::Sandbox::User=root -oAcquire::Retries=3 -oAPT::Update::Error-Mode=any)

if ! { "${apt[@]}" update &&
       if [[ $alone ]]; then cd "$state/cache/archives" && "${apt[@]}" download "$@" && cd "$OLDPWD"
       else "${apt[@]}" install -y --no-install-recommends --download-only "$@"; fi } > "$state/log" 2>&1; then
  tail -n 5 "$state/log" >&2
  exit 1
fi
rm -rf "$root"
mkdir -p "$root"
for deb in "$state"/cache/archives/*.deb; do dpkg -x "$deb" "$root"; done
echo "$stamp" > "$root/.unpacked"
