# SPDX-License-Identifier: Apache-2.0
"""DymGPU's experiments as workloads of `gantry sim`. A batch is some orders in which the vGPUs of
an experiment are created: sizes and loads are shuffled. A batch's figure is the sum over its
orders."""

import json
import random
import subprocess
import tempfile

from harness.targets import BenchError, clean_environment

SLOTS, SLOT_MIB = 54, 64            # the paper's 3,840 MB less Dom0's 384 MB
SIZES_MIB = (384, 704, 1024)        # a third of the vGPUs each
SLOT_COPY_MS = 1.6                  # a guess, where switches cost time
PLACES = ("first-fit", "size", "utilization", "turn")
GVIRT = PLACES[0]

# Device and processor time of a frame, in ms: guessed, the paper does not give them.
ALWAYS_BUSY = "kernel = 1ms\n"
LIGHT = "kernel = exp:4ms\nthink = exp:300ms\n"
MEDIUM = "kernel = exp:8ms\nthink = exp:90ms\n"
HEAVY = "kernel = exp:12ms\nthink = exp:6ms\n"
# Table II: lightsmark, firefox-asteroids, urbanterror.
SETS = {1: (11, 2, 2), 2: (2, 2, 11), 3: (3, 6, 6), 4: (6, 3, 6), 5: (6, 6, 3)}


def loads_of_set(number):
    return [load for load, n in zip((LIGHT, MEDIUM, HEAVY), SETS[number]) for _ in range(n)]


def bound_of_round(n):
    """Slots that a round of n turns copies at least, with any placement: the memory that does not
    fit."""
    return max(0, sum(SIZES_MIB[i % 3] // SLOT_MIB for i in range(n)) - SLOTS)


def workload(loads, seed, seconds, copies_cost):
    """Text for `gantry sim`: one order of creation."""
    shuffled = random.Random(seed)
    loads = list(loads)
    sizes = [SIZES_MIB[i % 3] for i in range(len(loads))]
    shuffled.shuffle(sizes)
    shuffled.shuffle(loads)
    bus = f"bus = {int(SLOT_MIB / SLOT_COPY_MS * 1000)}M\n" if copies_cost else ""
    text = (f"[sim]\nmemory = {SLOTS * SLOT_MIB}M\nslot = {SLOT_MIB}M\nslice = 16ms\nspin = 0\n"
            f"policy = rr\nswap-share = none\nplace = all\nseed = {seed}\ntime = {seconds}s\n{bus}")
    # Nothing is copied out: a private table of the paper follows each write.
    for i, (size, load) in enumerate(zip(sizes, loads)):
        text += f"[tenant vm{i}]\nmemory = {size}M\nwrites = 0\n{load}"
    return text


def simulate(gantry, text):
    """The runs of a workload, one a placement or a policy."""
    with tempfile.NamedTemporaryFile("w", suffix=".sim") as file:
        file.write(text)
        file.flush()
        done = subprocess.run([gantry, "sim", file.name, "--json"], env=clean_environment(),
                              capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise BenchError("gantry sim: " + done.stderr.strip()[-300:])
    return json.loads(done.stdout)["runs"]


def batches(context, loads, copies_cost=False):
    """[{place: {"copies", "turns", "kernels"}}], the sums of each batch."""
    found = []
    for batch in range(context.batches):
        sums = {place: {"copies": 0, "turns": 0, "kernels": 0} for place in PLACES}
        for order in range(context.orders):
            seed = batch * 1000 + order + 1
            for run in simulate(context.gantry, workload(loads, seed, context.seconds,
                                                         copies_cost)):
                one = sums[run["place"]]
                one["copies"] += run["devices"][0]["chunk_copies"]
                one["turns"] += run["turns"]
                one["kernels"] += run["kernels"]
        found.append(sums)
    return found
