# SPDX-License-Identifier: Apache-2.0
"""The rows of an experiment. Shares vary from run to run, so a bar is judged by quartiles."""

from harness.rows import QUARTILE, barred, figure


def bar(what, values, at_least=None, at_most=None, **more):
    return barred(what, values, at_least, at_most, by=QUARTILE, **more)


def noise(result):
    """Every comparison is to be read against it; nothing where the programs did not run natively."""
    if result["native_over_native"]:
        yield figure("native over native", result["native_over_native"])
