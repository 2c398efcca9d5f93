# SPDX-License-Identifier: Apache-2.0
"""GViM's table 1: four programs of credits 512:256:256:256 on two devices. Here two of PoCL's, each a thread; programs, gantryd and both
devices share all cores, for two cores leave none for the programs. What a program gets is told against what one program a device does."""

from harness.figures import chart, series
from harness.rows import figure, paper

from . import measures as m
from .machine import SETTLE_NS, EveryCore, Scene
from .programs import LOADS
from .rows import bar

CREDITS = (512, 256, 256, 256)
# GViM's table 1, milliseconds an iteration over what it expected of the credits: round robin, XenoCredit.
PAPER = ((2.632 / 1.8, 1.867 / 1.8), (2.567 / 2.4, 3.12 / 2.4), (2.804 / 2.4, 3.213 / 2.4), (2.901 / 2.4, 3.3 / 2.4))
DEVICE = (0, 0, 1, 1)


class TwoDevices:
    title = "Four programs on two devices, credits 512:256:256:256 (GViM table 1)"

    def run(self, context, policy):
        programs = [((*LOADS["BlackScholes"], "--device", str(DEVICE[i])), f"vm{i + 1}") for i in range(4)]
        tenants = {f"vm{i + 1}": {"weight": c} for i, c in enumerate(CREDITS)}
        parts, overhead = [], []
        with Scene(context, programs, tenants, policy, native=False, driver={"POCL_DEVICES": "pthread pthread"},
                   cores=EveryCore(context.cores)) as scene:
            scene.together(0.3)
            for n in range(context.quick_pairs if context.quick else context.pairs):
                def alone():
                    # One on each device at the same time, for with two cores the devices are not quite their own masters.
                    a, b = m.rates(scene.together(context.seconds, (0, 2)), SETTLE_NS)
                    return [a, a, b, b]

                def together():
                    return m.rates(scene.together(context.seconds), SETTLE_NS)
                if n % 2:
                    measured, lone = together(), alone()
                else:
                    lone, measured = alone(), together()
                parts.append(m.shares(measured, lone))
                overhead.append(2 / sum(parts[-1]))
                context.progress(f"{n + 1} pairs")
        return {"parts": parts, "overhead": overhead}

    def rows(self, r):
        for i, credit in enumerate(CREDITS):
            on_device = sum(c for c, d in zip(CREDITS, DEVICE) if d == DEVICE[i])
            due = credit / on_device
            of_both = [p[i] / sum(x for x, d in zip(p, DEVICE) if d == DEVICE[i]) for p in r["parts"]]
            yield bar(f"VM{i + 1}, credit {credit}: part of device {DEVICE[i]} (due {due:.3f})", of_both, due * 0.97, due * 1.03)
            yield figure(f"VM{i + 1}: time of an iteration over what its credit predicts", self.times(r, i),
                         paper=paper("GViM, table 1", f"RR {PAPER[i][0]:.2f}, XC {PAPER[i][1]:.2f}"))
        yield figure("aggregated overhead, both devices", r["overhead"])

    @staticmethod
    def times(r, i):
        due = CREDITS[i] / sum(c for c, d in zip(CREDITS, DEVICE) if d == DEVICE[i])
        return [due / max(p[i], 1e-9) for p in r["parts"]]

    def figures(self, by_policy):
        machines = range(len(CREDITS))
        yield chart("bars", "", "Time of an iteration over what credits predict", "over the prediction", [
            *(series(policy, {f"VM{i + 1}": self.times(r, i) for i in machines}) for policy, r in by_policy),
            series("GViM, round robin", {f"VM{i + 1}": PAPER[i][0] for i in machines}, paper=True),
            series("GViM, XenoCredit", {f"VM{i + 1}": PAPER[i][1] for i in machines})])
