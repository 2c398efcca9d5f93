#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Argon in a periodic box, on OpenMM's OpenCL platform in double precision; the energy is checked against OpenMM's reference.
With "paced", on its OpenCL platform alone: some steps for each line of stdin."""

import hashlib
import sys

import openmm as mm

N, D, STEPS = 6, 0.38, 200


def simulate(platform, properties, lines=None):
    system = mm.System()
    force = mm.NonbondedForce()
    force.setNonbondedMethod(mm.NonbondedForce.CutoffPeriodic)
    force.setCutoffDistance(0.9)
    positions = []
    for i in range(N):
        for j in range(N):
            for k in range(N):
                system.addParticle(39.948)
                force.addParticle(0, 0.34, 0.996)
                positions.append(mm.Vec3(i * D + 0.01 * ((i * 7 + j * 3 + k) % 5), j * D + 0.01 * ((i + j * 5 + k) % 3), k * D))
    system.addForce(force)
    edge = N * D
    system.setDefaultPeriodicBoxVectors(mm.Vec3(edge, 0, 0), mm.Vec3(0, edge, 0), mm.Vec3(0, 0, edge))
    integrator = mm.VerletIntegrator(0.002)
    context = mm.Context(system, integrator, mm.Platform.getPlatformByName(platform), properties)
    context.setPositions(positions)
    for _ in [None] if lines is None else lines:
        integrator.step(STEPS)
    state = context.getState(getEnergy=True, getPositions=True)
    return state.getPotentialEnergy()._value, state.getPositions(asNumpy=True)._value


paced = sys.argv[1:] == ["paced"]
energy, positions = simulate("OpenCL", {"Precision": "double"}, sys.stdin if paced else None)
print("energy", energy.hex(), "positions", hashlib.sha256(positions.tobytes()).hexdigest())
wanted = energy if paced else simulate("Reference", {})[0]
if abs(energy - wanted) > 1e-3 * abs(wanted):
    print("WRONG: the reference says", wanted)
    sys.exit(1)
