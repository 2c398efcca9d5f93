/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_VGPU_CORE_INCLUDE_FILES_H
#define GN_VGPU_CORE_INCLUDE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The program's files that a build may include; gn_vgpu_program_file (vgpu/vgpu.h) finds them. */
struct gn_build_includes;
struct gn_vgpu;
struct gn_session_file;
struct gn_frame;
struct gn_frame_reader;

/*
 * Helper thread. Until gn_vgpu_end_build, gn_vgpu_program_file finds the files in the program's
 * folders. `names` (each with its terminating zero) and `found` stay the caller's. Files that are
 * read are added to `found`. `again`: the program is not asked, and `found` is all there is.
 */
void gn_vgpu_begin_build(struct gn_vgpu *v, uint32_t number, const char *names, size_t n_names,
                         struct gn_build_includes *found, bool again);
void gn_vgpu_end_build(void);
/* Delivers an answer of the program's; takes fd (-1: none). The thread that receives it. */
void gn_vgpu_file_came(uint32_t seq, const struct gn_session_file *file, int fd);
/* Control thread: handles a GN_SESSION_FILE. -EPROTO: it is malformed. */
int gn_vgpu_receive_file(struct gn_frame_reader *reader, const struct gn_frame *frame);

#endif
