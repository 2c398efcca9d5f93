#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Writes the file by which ICD loaders find Gantry. Runs at the end of `meson install`, which sets MESON_INSTALL_* and DESTDIR.
#
#   write-icd.sh LIBDIR SYSCONFDIR
#
# The file holds an absolute path, so that it works with OCL_ICD_VENDORS from anywhere. That path is where the library will lie at run
# time: PREFIX/LIBDIR, or $GANTRY_ICD_LIBDIR where the tree is used from another place than its prefix (make stage, make install).
set -eu

libdir=$1
sysconfdir=$2
library=libgantry-opencl.so

under()
{
    case $1 in
    /*) echo "${DESTDIR:-}$1" ;;
    *) echo "$MESON_INSTALL_DESTDIR_PREFIX/$1" ;;
    esac
}

if [ ! -e "$(under "$libdir")/$library" ]; then
    echo "write-icd: $library was not installed to $(under "$libdir"): build all targets first" >&2
    exit 1
fi

case $libdir in
/*) at_run_time=$libdir ;;
*) at_run_time=${MESON_INSTALL_PREFIX%/}/$libdir ;;
esac
at_run_time=${GANTRY_ICD_LIBDIR:-$at_run_time}

folder=$(under "$sysconfdir")/OpenCL/vendors
mkdir -p "$folder"
echo "$at_run_time/$library" >"$folder/gantry.icd"
echo "Installing gantry.icd to $folder"
