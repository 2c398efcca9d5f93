# SPDX-License-Identifier: Apache-2.0
"""A line of the table: a figure of a paper's, what it shows, the paper's value and ours."""


def row(figure, what, paper, here, bar="", met=None):
    return {"figure": figure, "what": what, "paper": paper, "here": here, "bar": bar, "met": met}
