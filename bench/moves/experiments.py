# SPDX-License-Identifier: Apache-2.0
"""Every experiment by name. One has a title, run(context) that measures, rows(data) that makes a
result's rows of it, and figures(data); `beside` names the column of what was measured beside the
rows; `staged` where it needs a staged tree."""

from .crane import Frames, Switches, Tracking
from .pages import Course, Filter, Hashes, Samples, Stops
from .speed import Speed

EXPERIMENTS = {"hashes": Hashes(), "stops": Stops(), "speed": Speed(), "samples": Samples(),
               "filter": Filter(),
               "course": Course(), "tracking": Tracking(), "switches": Switches(),
               "frames": Frames()}
