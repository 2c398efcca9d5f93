/* SPDX-License-Identifier: Apache-2.0 */
/*
 * More data segments for a program and its worker. The worker is told of a segment first, so that
 * no message names one that it does not know. gantryd's thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fault.h"
#include "daemon/daemon.h"
#include "daemon/vgpu/segments.h"
#include "daemon/vgpu/worker.h"
#include "shm/segment.h"
#include "shm/session_layout.h"

bool gn_segment_is_session(int fd)
{
    struct stat st;
    const int seals = fcntl(fd, F_GET_SEALS), wanted = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    return seals >= 0 && (seals & wanted) == wanted && !fstat(fd, &st) &&
           (uint64_t)st.st_size == GN_SESSION_BYTES;
}

int gn_vgpus_add_segment(struct gn_vgpu_record *v, uint32_t seq, uint64_t bytes,
                         struct gn_error *err)
{
    struct gn_link_segment_made made = {.index = v->n_segments + 1, .bytes = bytes};
    struct gn_segment s;
    int rc;
    /* The program asks again. */
    if (gn_record_is_stopped(v))
        return gn_fail(err, EAGAIN, NULL, "the vGPU is on its way to another worker");
    if (!gn_record_is_listed(v) || v->control.fd < 0)
        return gn_fail(err, ENODEV, NULL, "there is no worker");
    if (bytes == 0 || bytes > GN_LINK_SEGMENT_LIMIT || bytes % 4096 ||
        v->n_segments == GN_LINK_MAX_SEGMENTS)
        return gn_fail(
            err, EINVAL, NULL,
            "bad segment: the size must be whole pages, and there are at most %d segments",
            GN_LINK_MAX_SEGMENTS);
    rc = gn_segment_create("gantry-data", bytes, &s);
    if (rc)
        return gn_fail(err, -rc, NULL, "cannot make a segment: %s", strerror(-rc));
    rc = gn_vgpus_push(v, GN_WORKER_SEGMENT, 0, &made, sizeof made, s.fd);
    if (rc == 0) {
        if (v->owned_by && v->owned_by->ops->segment)
            v->owned_by->ops->segment(v->owned_by, v, &made, s.fd);
        GN_FAULT("daemon-segment-half-told");
        v->n_segments++;
        gn_conn_send(v->conn, GN_LINK_SEGMENT_MADE, seq, &made, sizeof made, &s.fd, 1);
    }
    gn_segment_fini(&s);
    return rc ? gn_fail(err, -rc, NULL, "the worker cannot be told of a segment: %s", strerror(-rc))
              : 0;
}
