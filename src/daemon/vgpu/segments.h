/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_DAEMON_VGPU_SEGMENTS_H
#define GN_DAEMON_VGPU_SEGMENTS_H

#include "daemon/vgpu/vgpu_record.h"

/* Shared memory of sessions (segments.c). gantryd's thread. */

/* Whether it is a session's ring: memory of sealed size, so that reading it neither waits nor
 * fails. */
bool gn_segment_is_session(int fd);
/* Another data segment for the program and its worker. 0 or -errno. */
int gn_vgpus_add_segment(struct gn_vgpu_record *v, uint32_t seq, uint64_t bytes,
                         struct gn_error *err);

#endif
