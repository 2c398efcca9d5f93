# SPDX-License-Identifier: Apache-2.0
"""What an experiment says: rows of a figure each, with the paper's beside it and perhaps a bar."""

from . import measures as m


def bar(what, values, at_least=None, at_most=None, paper=""):
    text = " and ".join(f"{word} {limit:.4g}" for word, limit in (("at least", at_least), ("at most", at_most)) if limit is not None)
    return {"what": what, "values": values, **m.spread(values), "bar": text, "met": m.meets(values, at_least, at_most), "paper": paper}


def figure(what, values, paper=""):
    """A number without a bar."""
    return {"what": what, "values": values, **m.spread(values), "bar": "", "met": None, "paper": paper}


def noise(result):
    """What every comparison is to be read against; nothing where the programs did not run natively."""
    if result["native_over_native"]:
        yield figure("native over native", result["native_over_native"])
