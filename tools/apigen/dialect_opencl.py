# SPDX-License-Identifier: Apache-2.0
"""OpenCL's names and rules; dialects.py explains each."""

TITLE = "OpenCL"
GUEST_INCLUDE = "guest/opencl/opencl_guest_rt.h"
HOST_INCLUDE = "vgpu/opencl/opencl_host_rt.h"
RESULT = "cl_int"
SUCCESS = "CL_SUCCESS"
NO_MEMORY = "CL_OUT_OF_HOST_MEMORY"
UNSUPPORTED = "CL_INVALID_OPERATION"
UNKNOWN_QUERY = "CL_INVALID_VALUE"
CALL = "CL_API_CALL "
CALLBACK = "CL_CALLBACK "
COUNT = "cl_uint"
QUEUE, QUEUE_KIND = "cl_command_queue", "queue"
MEMORY, MEMORY_KIND = "cl_mem", "mem"
EVENT = "cl_event"
ROOT_KINDS = ("platform", "device")
WAITS = ("num_events_in_wait_list", "event_wait_list", "event")
QUERY = ("param_name", "param_value_size", "param_value", "param_value_size_ret")
ERROR = "errcode_ret"
LENGTH_WORDS = {"product": "gn_product", "rect_span": "gn_rect_span", "image_span": "gn_image_span"}
TYPE_PREFIX = "cl_"

INVALID = {"platform": "CL_INVALID_PLATFORM", "device": "CL_INVALID_DEVICE", "context": "CL_INVALID_CONTEXT",
           "queue": "CL_INVALID_COMMAND_QUEUE", "mem": "CL_INVALID_MEM_OBJECT", "sampler": "CL_INVALID_SAMPLER",
           "program": "CL_INVALID_PROGRAM", "kernel": "CL_INVALID_KERNEL", "event": "CL_INVALID_EVENT",
           "cmdbuf": "CL_INVALID_COMMAND_BUFFER_KHR"}

# The type that a creating entry point returns, by a word in its name; the first that fits.
MADE = (("Context", "cl_context"), ("CommandBuffer", "cl_command_buffer_khr"), ("Buffer", "cl_mem"), ("Image", "cl_mem"),
        ("Program", "cl_program"), ("UserEvent", "cl_event"))

# The table has a mark in their places.
MARKED = ("clGetPlatformIDs", "clUnloadCompiler")


def invalid(kind):
    return INVALID[kind]


def made_type(call):
    if call.served == "create":
        return {"queue": "cl_command_queue", "cmdbuf": "cl_command_buffer_khr"}.get(call.kind, f"cl_{call.kind}")
    for word, made in MADE:
        if word in call.name:
            return made
    raise KeyError(f"what does {call.name} return?")


def returned_type(call):
    if call.name == "clSVMAlloc" or call.name.startswith("clEnqueueMap") or "ExtensionFunctionAddress" in call.name:
        return "void *"
    if call.name == "clSVMFree":
        return "void"
    return made_type(call) if call.param("err") else RESULT


def driver_table(call):
    """The ICD's table, or that of the extensions' functions."""
    return "gn_extensions(v)" if call.extension else "gn_cl(v)"


def declare_table(api, out):
    out(f"\nextern struct _cl_icd_dispatch gn_{api.name}_dispatch;")


def emit_table(api, out):
    """The ICD dispatch table."""
    out(f"struct _cl_icd_dispatch gn_{api.name}_dispatch = {{")
    for c in api.calls:
        if not c.message and not c.extension and c.name not in MARKED:
            out(f"    .{c.name} = gn_{c.name},")
    out("    /* Version 2.0 of cl_khr_icd: these two say so, and no loader calls them. */")
    for name in MARKED:
        out(f"    .{name} = (cl_api_{name})GN_ICD2_TAG,")
    for name in api.absent:
        out(f"    .{name} = (void *)gn_{name},")
    out("};\n")
