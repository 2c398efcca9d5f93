# SPDX-License-Identifier: Apache-2.0
"""An API that shares no name with OpenCL, for toy.api: what the tool writes for it must come from here."""

TITLE = "Toy"
GUEST_INCLUDE = "guest/toy/toy_guest_rt.h"
HOST_INCLUDE = "vgpu/toy/toy_host_rt.h"
RESULT = "toy_result"
SUCCESS = "TOY_FINE"
NO_MEMORY = "TOY_NO_MEMORY"
UNSUPPORTED = "TOY_NO_SUCH_CALL"
UNKNOWN_QUERY = "TOY_NO_SUCH_QUESTION"
CALL = ""
CALLBACK = ""
COUNT = "unsigned"
QUEUE, QUEUE_KIND = "toy_stream", "stream"
MEMORY, MEMORY_KIND = "toy_block", "block"
EVENT = "toy_flag"
ROOT_KINDS = ("card",)
WAITS = ("n_after", "after", "done")
QUERY = ("question", "room", "answer", "used")
ERROR = "why"
LENGTH_WORDS = {"area": "gn_toy_area"}
TYPE_PREFIX = "toy_"


def invalid(kind):
    return f"TOY_NO_{kind.upper()}"


def made_type(call):
    return f"toy_{call.kind}"


def returned_type(call):
    return made_type(call) if call.param("err") else RESULT


def driver_table(call):
    return "gn_toy_extras(v)" if call.extension else "gn_toy(v)"


def declare_table(api, out):
    """A program links this API's entry points by their names."""


def emit_table(api, out):
    pass
