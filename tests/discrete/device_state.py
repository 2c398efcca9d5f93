# SPDX-License-Identifier: Apache-2.0
"""The emulated discrete GPU for a test: its driver's file, and the counts in its state file."""

import os
import struct

# The order of enum dg_count in discrete.h.
COUNTS = ("peak_bytes", "refusals", "to_device_bytes", "from_device_bytes", "transfers", "bus_to_ns", "bus_from_ns", "launches",
          "creations", "maps", "held", "reclaimed_bytes")


class Device:
    """A device of its own in the folder `work`. `icd`: libdiscrete-icd.so. `options`: as in $DISCRETE."""

    def __init__(self, icd, work, options=""):
        self.icd = icd
        self.options = options
        work = os.path.abspath(work)
        self.vendors = os.path.join(work, "discrete-vendors")
        self.state = os.path.join(work, "discrete-state")
        os.makedirs(self.vendors, exist_ok=True)
        with open(os.path.join(self.vendors, "discrete.icd"), "w", encoding="utf-8") as f:
            f.write(os.path.abspath(icd) + "\n")
        # A new file, since another device's processes may still use the old one. Workers of other users open it, too.
        if os.path.exists(self.state):
            os.unlink(self.state)
        with open(self.state, "wb"):
            os.chmod(self.state, 0o666)

    def env(self):
        """The environment of a process that loads the driver."""
        return {"OCL_ICD_VENDORS": os.path.join(self.vendors, ""), "DISCRETE": self.options, "DISCRETE_STATE": self.state}

    def counts(self):
        with open(self.state, "rb") as f:
            words = f.read(8 * len(COUNTS))
        return dict(zip(COUNTS, struct.unpack("<{}Q".format(len(COUNTS)), words.ljust(8 * len(COUNTS), b"\0"))))
