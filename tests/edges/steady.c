/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that are watched: one that does as much of one thing as it is told, when it is told; one
 * that is idle. */
#include "edge.h"

#include <string.h>
#include <time.h>

/* Every line heard lets it take one more step: a launch, its end, a read. It says each. */
int case_steps(int argc, char **argv)
{
    struct edge e;
    cl_uint x[16] = {0};
    CHECK(argc == 1);
    edge_open(&e, 0);
    cl_mem m = edge_buffer(&e, sizeof x);
    cl_kernel k = edge_kernel(&e, "add");
    NEED(clEnqueueWriteBuffer(e.queue, m, CL_TRUE, 0, sizeof x, x, 0, NULL, NULL));
    edge_set_add(k, m, 1);
    edge_say("ready");
    for (cl_uint i = 1; i <= (cl_uint)atoi(argv[0]); i++) {
        edge_hear();
        edge_launch(e.queue, k, 16, 0, NULL, NULL);
        NEED(clFinish(e.queue));
        NEED(clEnqueueReadBuffer(e.queue, m, CL_TRUE, 0, sizeof x, x, 0, NULL, NULL));
        CHECK(x[0] == i && x[15] == i);
        edge_say("step");
    }
    NEED(clReleaseKernel(k));
    NEED(clReleaseMemObject(m));
    edge_close(&e);
    return 0;
}

/* Has used everything, holds it, and waits for a line. */
int case_idle(int argc, char **argv)
{
    struct edge e;
    cl_uint x[16] = {0};
    cl_int rc;
    (void)argc;
    (void)argv;
    edge_open(&e, 0);
    cl_mem m = edge_buffer(&e, sizeof x);
    cl_kernel k = edge_kernel(&e, "add");
    edge_set_add(k, m, 1);
    for (int i = 0; i < 100; i++)
        edge_launch(e.queue, k, 16, 0, NULL, NULL);
    NEED(clEnqueueReadBuffer(e.queue, m, CL_TRUE, 0, sizeof x, x, 0, NULL, NULL));
    /* A command that waits keeps nobody busy either. */
    cl_event user = clCreateUserEvent(e.context, &rc);
    NEED(rc);
    NEED(clEnqueueMarkerWithWaitList(e.queue, 1, &user, NULL));
    NEED(clFlush(e.queue));
    edge_say("ready");
    edge_hear();
    return 0;
}
