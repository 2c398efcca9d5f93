# SPDX-License-Identifier: Apache-2.0
"""Every experiment by name. One has a title, run(context, policy) that gives data for a file, and rows(data) that makes figures and
verdicts of them; by_load where the data are a dictionary by load, of which some may be run anew."""

from .accounts import Accounting, AccountingCost, Decisions
from .gvim import TwoDevices
from .mixed import Chatty, Long, Pair, Sleeper
from .programs import LOADS, LONG_FEW_GROUPS, LONG_MANY_GROUPS
from .slicing import Slicing
from .weights import Cap, Crowd, Lag, Weights

EXPERIMENTS = {
    "fig8": Weights("Three vGPUs of one program, weights 1:2:3 (FairGV figure 8)", [1, 2, 3], 0.98, list(LOADS), ("0.99", "1.02"), factor=2),
    "fig9": Weights("Six vGPUs of one program, weights 1:2:2:3:3:4 (FairGV figure 9)", [1, 2, 2, 3, 3, 4], 0.97,
                    ["BlackScholes", "srad", "matrixMul"], ("0.97", "1.02"), factor=4),
    "fig11-mm": Pair("matrixMul (207 us) beside matrixMul of other kernel sizes (FairGV figure 11)", "matrixMul"),
    "fig11-hs": Pair("hotspot (133 us) beside matrixMul of other kernel sizes (FairGV figure 11)", "hotspot"),
    "chatty": Chatty(),
    "long": Long("Kernels of 1 s in 250,000 groups against kernels of 200 us", LONG_MANY_GROUPS, True),
    "long-whole": Long("Kernels of 1 s that cannot be split against kernels of 200 us", LONG_FEW_GROUPS, False),
    "lag": Lag(),
    "crowd": Crowd(),
    "table2": Accounting(),
    "accounting": AccountingCost(),
    "table4": Slicing(),
    "cap": Cap(),
    "fig10": Sleeper(),
    "decisions": Decisions(),
    "gvim": TwoDevices(),
}
