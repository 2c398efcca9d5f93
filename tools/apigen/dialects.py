# SPDX-License-Identifier: Apache-2.0
"""The dialects: a dialect is a module that has one API's names and rules, so that the model and the emitters have none.

A description's `dialect` line chooses it. What a dialect has:

    TITLE                       the API's name for people
    GUEST_INCLUDE, HOST_INCLUDE the handwritten headers that generated code needs
    RESULT, SUCCESS             the type that calls return, and its value for success
    NO_MEMORY, UNSUPPORTED, UNKNOWN_QUERY   results: memory is out; the driver lacks the call; Gantry does not know the query
    CALL, CALLBACK              the calling convention's mark before the name, of an entry point and of a callback
    COUNT                       the type that counts handles
    QUEUE, QUEUE_KIND           the type and the kind of queues of commands
    MEMORY, MEMORY_KIND         the type and the kind of memory objects
    EVENT                       the type of an event
    ROOT_KINDS                  kinds whose queries begin anew when the vGPU is lost
    WAITS                       the last parameters of a command: how many events, which, and its own
    QUERY                       the parameters of a query: the question, the answer's room, the answer, its length
    ERROR                       the parameter in which a creating call returns its result
    LENGTH_WORDS                functions in lengths, and their names in the vGPU's half
    TYPE_PREFIX                 the prefix of the API's type names
    invalid(kind)               the result for a handle that is not of that kind
    made_type(call)             the type of the handle that a creating call returns
    returned_type(call)         the type that an entry point returns
    driver_table(call)          the C expression of the table with the driver's function
    declare_table(api, out), emit_table(api, out)   the table of entry points that a loader takes, if the API has one
"""
import dialect_opencl

DIALECTS = {"opencl": dialect_opencl}
# Of a description without the line.
DEFAULT = dialect_opencl
