#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads an API description, checks it and writes the code for it. The same input gives the same bytes."""
import argparse
import os
import sys

import emit_docs
import emit_guest
import emit_host
import emit_wire
import model

OUTPUTS = {
    "wire.h": emit_wire.emit,
    "guest.h": emit_guest.emit_header,
    "guest.c": emit_guest.emit_source,
    "host.h": emit_host.emit_header,
    "host.c": emit_host.emit_source,
    "calls.md": emit_docs.emit,
}


def check_lock(api, description, path, update):
    """Numbers are never reused: a call keeps the number that the lock file has."""
    locked = {}
    with open(path, encoding="utf-8") as f:
        for at, line in enumerate(f, 1):
            words = line.split()
            if words and (len(words) != 2 or not words[1].isdigit()):
                raise model.DescriptionError(path, at, "NAME NUMBER is what a line of it looks like")
            if words and (words[0] in locked or int(words[1]) in locked.values()):
                raise model.DescriptionError(path, at, "a name or a number stands there twice")
            if words:
                locked[words[0]] = int(words[1])
    taken = {v: n for n, v in locked.items()}
    for call in api.calls:
        name, number = call.name, call.number
        if locked.get(name, number) != number:
            raise model.DescriptionError(description, call.line, f"{name} had number {locked[name]} and cannot get {number}")
        if taken.get(number, name) != name:
            raise model.DescriptionError(description, call.line, f"number {number} belonged to {taken[number]}: give {name} a new one")
        if name not in locked and not update:
            raise model.DescriptionError(description, call.line, f"{name} is not in {path}: run apigen.py --lock to record its number")
    if update:
        locked.update((c.name, c.number) for c in api.calls)
        with open(path, "w", encoding="utf-8") as f:
            f.writelines(f"{n} {v}\n" for n, v in sorted(locked.items(), key=lambda item: item[1]))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("description")
    parser.add_argument("--out", help="the folder to write to")
    parser.add_argument("--numbers", help="numbers.lock, to compare with")
    parser.add_argument("--lock", action="store_true", help="record new numbers in --numbers")
    args = parser.parse_args()
    try:
        api = model.read(args.description)
        if args.numbers:
            check_lock(api, args.description, args.numbers, args.lock)
    except (model.DescriptionError, OSError) as e:
        sys.exit(f"{e}")
    if args.out:
        for suffix, emit in OUTPUTS.items():
            lines = []
            emit(api, lines.append)
            separator = "-" if suffix.endswith(".md") else "_"
            with open(os.path.join(args.out, f"{api.name}{separator}{suffix}"), "w", encoding="utf-8") as f:
                f.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
