#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The faults of moves over tcp, of programs that share memory with their vGPUs until they go: killed and cut at the same points.

    far_faults_test.py STAGE PROGRAM RELAY      PROGRAM: moved; RELAY: a network in the way, as the tcp suite has it
"""

import sys

import tcp_faults_test
from moves_harness import TcpCase, telling


class FarFaults(tcp_faults_test.Faults):
    def program(self, daemon, **env):
        return super().program(daemon, GANTRY_CONNECT=daemon.address, MOVED_WITHOUT_SVM="1", **env)


if __name__ == "__main__":
    telling.main(TcpCase.stage, sys.argv[4:])
