/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_STREAM_SAMPLES_H
#define GN_STREAM_SAMPLES_H

#include "stream/stream.h"

/*
 * Streams for tests: in memory, small, with every kind of section. The bytes are the same each
 * time, except for the two times in section "stream", which a test may set to 0 (with new
 * checksums) or ignore.
 */
struct gn_sample_file {
    unsigned char *bytes;
    size_t n, capacity; /* capacity: for writing */
    size_t at;          /* for reading */
};

struct gn_stream_sink gn_sample_sink(struct gn_sample_file *f);
struct gn_stream_source gn_sample_source(struct gn_sample_file *f);
void gn_sample_free(struct gn_sample_file *f);

#define GN_SAMPLE_BUFFER_BYTES (20u * 4096 + 100) /* the last page is short */

/*
 * Writes a vGPU with a tenant, a device, a context, a program, a kernel, a buffer of
 * GN_SAMPLE_BUFFER_BYTES, an event, a callback, a pending command and a map, in two rounds.
 * `buffer` receives the buffer's final contents.
 */
int gn_sample_write(struct gn_stream_writer *w, unsigned char *buffer);

#endif
