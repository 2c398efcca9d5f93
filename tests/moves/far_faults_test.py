#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The faults of moves over tcp, of programs that share memory with their vGPUs until they go: killed and cut at the same points.

    far_faults_test.py STAGE PROGRAM RELAY      PROGRAM: moved; RELAY: a network in the way, as the tcp suite has it
"""

import sys
import unittest

import tcp_faults_test
from moves_harness import TcpCase, stage_ready


class FarFaults(tcp_faults_test.Faults):
    def program(self, daemon, **env):
        return super().program(daemon, GANTRY_CONNECT=daemon.address, MOVED_WITHOUT_SVM="1", **env)


if __name__ == "__main__":
    why = stage_ready(TcpCase.stage)
    if why:
        print(why)
        sys.exit(77)
    unittest.main(argv=sys.argv[:1] + sys.argv[4:], verbosity=2)
