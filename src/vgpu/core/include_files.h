/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_CORE_INCLUDE_FILES_H
#define GN_VGPU_CORE_INCLUDE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The program's files, which a build may include; gn_vgpu_program_file (vgpu/vgpu.h) finds them. */
struct gn_build_includes;
struct gn_vgpu;
struct gn_session_file;
struct gn_frame;
struct gn_frame_reader;

/* Helper thread: until the end, gn_vgpu_program_file finds what lies in the program's folders. The
 * names, each with its terminating zero, stay the caller's; so do the files that are found, and go
 * into `found`, unless `again`: then the program is not asked, and they are those that are in there
 * already. */
void gn_vgpu_begin_build(struct gn_vgpu *v, uint32_t number, const char *names, size_t n_names,
                         struct gn_build_includes *found, bool again);
void gn_vgpu_end_build(void);
/* An answer of the program's; takes fd (-1: none). Whichever thread hears. */
void gn_vgpu_file_came(uint32_t seq, const struct gn_session_file *file, int fd);
/* Control thread: a GN_SESSION_FILE came. -EPROTO: it is malformed. */
int gn_vgpu_receive_file(struct gn_frame_reader *reader, const struct gn_frame *frame);

#endif
