/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of cl_khr_command_buffer, which are found by name when a case runs. Included in the
 * place of difftest.h. */
#ifndef GN_DIFFTEST_CMDBUF_H
#define GN_DIFFTEST_CMDBUF_H

#include "command_buffers.h"
#include "difftest.h"

#define CMDBUF_DECLARE(name) extern name##_fn name;
COMMAND_BUFFER_FUNCTIONS(CMDBUF_DECLARE)
#undef CMDBUF_DECLARE

/* env_init(), and the functions. Ends the case, with a line that says so, where the device lacks
 * the extension. */
void cmdbuf_init(struct env *env);
/* A buffer of this queue, recorded. */
cl_command_buffer_khr cmdbuf_make(cl_command_queue queue, cl_command_buffer_flags_khr flags);
void cmdbuf_note_state(cl_command_buffer_khr buffer);
/* Waits until the buffer is not pending: a driver may complete an event before it says so of the
 * buffer. */
void cmdbuf_settle(cl_command_buffer_khr buffer);

#endif
