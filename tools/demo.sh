#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The quick start: two real programs share one device through Gantry, at the same time, unchanged.
#
#   tools/demo.sh [STAGE]     the staged tree, build/stage by default; see `make stage`
#
# Starts a daemon of its own on a private socket, touches no other, and leaves nothing behind.
set -u

stage=$(cd "${1:-build/stage}" 2>/dev/null && pwd) || { echo "demo: no ${1:-build/stage}: run 'make stage' first" >&2; exit 1; }
gantryd=$stage/bin/gantryd
gantry=$stage/bin/gantry
vendors=$stage/etc/OpenCL/vendors

for program in ffmpeg clpeak; do
    command -v $program >/dev/null || { echo "demo: $program is not installed: run 'make deps' first" >&2; exit 1; }
done

dir=$(mktemp -d "${TMPDIR:-/tmp}/gantry-demo.XXXXXX")
socket=$dir/g.sock
daemon=
film=
peak=

say()
{
    printf '\n\033[1m%s\033[0m\n' "$*"
}

stop()
{
    for pid in $film $peak $daemon; do
        kill "$pid" 2>/dev/null
    done
    wait
    rm -rf "$dir"
}

fail()
{
    echo "demo: $1" >&2
    [ -s "$dir/gantryd.log" ] && { echo "--- gantryd said:" >&2; tail -n 20 "$dir/gantryd.log" >&2; }
    exit 1
}
trap stop EXIT
trap 'exit 130' INT TERM

# Polls until the command succeeds; gives up when the process ends first.
until_true()
{
    process=$1
    shift
    until "$@"; do
        kill -0 "$process" 2>/dev/null || return 1
        sleep 0.05
    done
}

# Always called in a subshell, which becomes ffmpeg, so that $! is ffmpeg itself.
film()
{
    exec "$@" ffmpeg -nostdin -v error -init_hw_device opencl=ocl:0.0 -filter_hw_device ocl -f lavfi -i testsrc2=size=640x360:rate=25 \
        -frames:v 200 -vf format=yuv420p,hwupload,unsharp_opencl=lx=9:ly=9:la=2,hwdownload,format=yuv420p -f framemd5 -
}

frames()
{
    grep -cv '^#' "$1"
}

running()
{
    [ "$("$gantry" ls --connect "unix:$socket" --json 2>/dev/null | grep -o '"id"' | wc -l)" -ge "$1" ]
}

say "1. The reference: ffmpeg sharpens 200 frames on the vendor's driver, without Gantry"
(export POCL_CACHE_DIR="$dir/cache-native" && film) >"$dir/native" || fail "ffmpeg fails without Gantry: is there an OpenCL driver?"
echo "$(frames "$dir/native") frames, their hashes kept"

say "2. gantryd starts on a private socket"
echo "\$ gantryd --socket $socket"
POCL_CACHE_DIR=$dir/cache "$gantryd" --socket "$socket" 2>"$dir/gantryd.log" &
daemon=$!
until_true $daemon grep -q '^ready unix:' "$dir/gantryd.log" || fail "gantryd did not start"
echo "\$ gantry devices"
"$gantry" devices --connect "unix:$socket" || fail "gantry devices failed"

say "3. Two programs at once: ffmpeg by 'gantry run', clpeak by nothing but its environment"
echo "\$ gantry run -- ffmpeg ... unsharp_opencl ... &"
echo "\$ OCL_ICD_VENDORS=$vendors GANTRY_CONNECT=unix:$socket clpeak --transfer-bandwidth --kernel-latency &"
film "$gantry" run --connect "unix:$socket" -- >"$dir/shared" 2>"$dir/film.err" &
film=$!
OCL_ICD_VENDORS=$vendors GANTRY_CONNECT=unix:$socket clpeak --transfer-bandwidth --kernel-latency >"$dir/peak" 2>&1 &
peak=$!
if until_true $film running 2; then
    echo "\$ gantry ls"
    "$gantry" ls --connect "unix:$socket"
else
    echo "(ffmpeg was done before both were seen at once)"
fi

wait $film || fail "ffmpeg failed through Gantry: $(cat "$dir/film.err")"
film=
wait $peak || fail "clpeak failed through Gantry: $(cat "$dir/peak")"
peak=

say "4. The results"
cmp -s "$dir/native" "$dir/shared" || fail "ffmpeg's frames differ from those without Gantry"
echo "ffmpeg: $(frames "$dir/shared") frames, every one identical to the one without Gantry"
echo "clpeak:"
grep -E 'Device:|Write|Read|memcpy|latency' "$dir/peak"

say "5. The end"
kill -TERM $daemon
wait $daemon || fail "gantryd ended with an error"
daemon=
[ ! -e "$socket" ] || fail "the socket is still there"
echo "gantryd has ended; no process and no socket is left"
