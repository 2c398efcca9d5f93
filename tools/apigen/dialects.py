# SPDX-License-Identifier: Apache-2.0
"""The dialects: a dialect is a module that has one API's names and rules, so that the model and the emitters have none.

A description's `dialect` line chooses it. What a dialect has:

    TITLE                       the API's name for people
    GUEST_INCLUDE, HOST_INCLUDE the handwritten headers that generated code needs
    RESULT, SUCCESS             the type that calls return, and its value for success
    NO_MEMORY, UNSUPPORTED, UNKNOWN_QUERY   results: memory is out; the driver lacks the call; it is asked what Gantry does not know
    CALL, CALLBACK              what stands between a function's type and its name, for an entry point and for a callback
    COUNT                       the type that counts handles
    QUEUE, QUEUE_KIND           the type and the kind of what commands are put into
    MEMORY, MEMORY_KIND         the type and the kind of what commands read and write
    EVENT                       the type of an event
    ROOT_KINDS                  kinds whose queries begin anew when the vGPU is lost
    WAITS                       the last parameters of a command: how many events, which, and its own
    QUERY                       the parameters of a query: its name, the room for the answer, the answer, how long that is
    ERROR                       the parameter in which a creating call returns its result
    LENGTH_WORDS                functions in lengths, by what the vGPU's half calls them
    TYPE_PREFIX                 what the names of the API's types begin with
    invalid(kind)               the result for a handle that is none of that kind
    made_type(call)             the type of the handle that a creating call returns
    returned_type(call)         what an entry point returns
    driver_table(call)          the C expression of the table that the driver's function stands in
    declare_table(api, out), emit_table(api, out)   the table of entry points that a loader takes, if the API has one
"""
import dialect_opencl

DIALECTS = {"opencl": dialect_opencl}
# Of a description without the line.
DEFAULT = dialect_opencl
