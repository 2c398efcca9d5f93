#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Installs what is missing on Debian or Ubuntu; changes nothing when all is there. docs/dependencies.md has each package's reason.
#
#   tools/deps.sh [GROUP]...                 build, demo, test, bench, figures, fuzz; build, test and bench when none is named
#   tools/deps.sh --ask [GROUP]...           on a terminal, ask before anything is installed
#   tools/deps.sh --list [GROUP]...          print the packages instead
#   tools/deps.sh --check [GROUP]...         print the missing ones and exit 1 if there are any
set -u

build='gcc libc6-dev pkg-config meson ninja-build python3 opencl-c-headers libjansson-dev libssl-dev libbsd-dev libxxhash-dev libzstd-dev libncurses-dev'

# A driver, a loader, and the two programs that share it.
demo='ocl-icd-libopencl1 pocl-opencl-icd clpeak ffmpeg'

# Drivers and a loader, unit tests, tools that look at what was built, and the real programs that the suite runs.
test='libcmocka-dev clang-format binutils ocl-icd-opencl-dev pocl-opencl-icd oclgrind strace valgrind procps openssl
g++ libviennacl-dev
clinfo clpeak hashcat ffmpeg x264 python3-numpy python3-opencv python3-pyopencl clblast-tests
python3-simtk libopenmm-plugins'

# The loads are our own; whole programs are measured with these. The build files of tests and benches need cmocka.
bench='libcmocka-dev ocl-icd-opencl-dev pocl-opencl-icd clpeak ffmpeg hashcat gnuplot-nox'

# Loads of our own, and pictures of what was measured.
figures='libcmocka-dev ocl-icd-opencl-dev pocl-opencl-icd gnuplot-nox'

# libFuzzer comes with clang.
fuzz='clang libclang-rt-dev'

fail()
{
    echo "deps: $1" >&2
    exit 1
}

mode=install
ask=
groups=
for arg; do
    case $arg in
    --list) mode=list ;;
    --check) mode=check ;;
    --ask) ask=yes ;;
    build | demo | test | bench | figures | fuzz) groups="$groups $arg" ;;
    *) fail "unknown argument '$arg' (groups: build demo test bench figures fuzz; options: --ask --list --check)" ;;
    esac
done
[ -n "$groups" ] || groups='build test bench'

wanted=
for group in $groups; do
    case $group in
    build) wanted="$wanted $build" ;;
    demo) wanted="$wanted $demo" ;;
    test) wanted="$wanted $test" ;;
    bench) wanted="$wanted $bench" ;;
    figures) wanted="$wanted $figures" ;;
    fuzz) wanted="$wanted $fuzz" ;;
    esac
done
# A package may stand in two groups.
# shellcheck disable=SC2086 # the lists are words
wanted=$(printf '%s\n' $wanted | sort -u | tr '\n' ' ')
wanted=${wanted% }

if [ $mode = list ]; then
    echo "$wanted"
    exit 0
fi

command -v dpkg-query >/dev/null && command -v apt-get >/dev/null ||
    fail "this is not Debian or Ubuntu: install by hand what 'tools/deps.sh --list' names"

# One query for all, or the common case, nothing to do, would cost a second.
installed=" $(dpkg-query -W -f '${db:Status-Status} ${Package}\n' 2>/dev/null | sed -n 's/^installed //p' | tr '\n' ' ') "
missing=
for package in $wanted; do
    case $installed in
    *" $package "*) ;;
    *) missing="$missing $package" ;;
    esac
done
missing=${missing# }

[ -n "$missing" ] || exit 0
if [ $mode = check ]; then
    echo "$missing"
    exit 1
fi

# Asked before sudo, which asks for a password.
if [ -n "$ask" ] && [ -t 0 ] && [ -t 2 ]; then
    # What apt-get would fetch, one a line with its size: needs no rights. Nothing where apt's lists are missing.
    # shellcheck disable=SC2086
    fetched=$(apt-get install -y -qq --no-install-recommends --print-uris $missing 2>/dev/null |
        awk '{ n++; bytes += $3 } END { if (n) printf " (%d packages in all, %.0f MB to download)", n, bytes / 1e6 }')
    printf 'deps: missing: %s%s\ndeps: install these, and what they need, with apt-get? [Y/n] ' "$missing" "$fetched" >&2
    read -r answer || answer=n
    case $answer in
    '' | [Yy] | [Yy][Ee][Ss]) ;;
    *) fail "nothing is installed" ;;
    esac
fi

as_root=
if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || fail "no permission to install ($missing): run as root or install sudo"
    # Without a terminal sudo could not ask for a password: say so instead of hanging.
    if [ -t 0 ]; then as_root=sudo; else as_root='sudo -n'; fi
    $as_root true 2>/dev/null || fail "no permission to install ($missing): sudo refused"
fi

# shellcheck disable=SC2086
known()
{
    [ "$(apt-cache show --no-all-versions $missing 2>/dev/null | sed -n 's/^Package: //p' | sort -u | wc -l)" = "$(echo $missing | wc -w)" ]
}
if ! known; then
    $as_root apt-get update -q || fail "apt-get update failed: is there a network?"
    known || fail "apt does not know all of: $missing"
fi
# What apt-get would do, in its own words.
# shellcheck disable=SC2086
sizes=$($as_root env LC_ALL=C apt-get install -q --no-install-recommends --assume-no $missing 2>/dev/null |
    sed -n 's/.* \([0-9]* newly installed\),.*/\1/p; s/^Need to get \(.*\) of archives.*/\1 to download/p; s/.*, \(.* of additional disk space\).*/\1/p' |
    paste -sd, | sed 's/,/, /g')
echo "deps: installing $missing${sizes:+ ($sizes)}" >&2

# shellcheck disable=SC2086
install()
{
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing
}
# A package list that is known but old names files that are gone: one update mends that.
install || { $as_root apt-get update -q && install; } || fail "apt-get could not install: $missing"
