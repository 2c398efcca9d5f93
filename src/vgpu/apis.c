/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of the APIs whose vGPUs this build serves, and the vGPU's start, which looks the API of
 * the boot's platform up there. Called on the worker's main thread, or in passthrough on the
 * program's thread that makes the vGPU. A new API is one entry here and one in backend/backend.c.
 */
#include "backend/backend.h"
#include "base/checked.h"
#include "base/log.h"
#include "vgpu/core/serve.h"
#include "vgpu/opencl/opencl_vgpu.h"
#include "vgpu/run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct gn_vgpu_api *const gn_vgpu_apis[] = {&gn_opencl_vgpu_api};

static const struct gn_vgpu_api *api_of(const struct gn_vgpu_boot *boot)
{
    for (size_t i = 0; i < GN_ARRAY_SIZE(gn_vgpu_apis); i++)
        if (strcmp(gn_vgpu_apis[i]->name, boot->platform->ops->info->name) == 0)
            return gn_vgpu_apis[i];
    return NULL;
}

int gn_vgpu_serve(const struct gn_vgpu_boot *boot)
{
    static struct gn_vgpu vgpu;
    const struct gn_vgpu_api *api = api_of(boot);
    if (!api) {
        gn_log(GN_LOG_ERROR, "vgpu=%08x this build serves no vGPU of %s", boot->id,
               boot->platform->ops->info->name);
        return 1;
    }
    /* Makes output that a driver prints through the C library appear at once. */
    setvbuf(stdout, NULL, _IONBF, 0);
    return gn_vgpu_run(&vgpu, boot, api);
}

int gn_vgpu_start_in_program(struct gn_vgpu_boot *boot, struct gn_vgpu **ret, struct gn_error *err)
{
    const struct gn_vgpu_api *api = api_of(boot);
    *ret = NULL;
    if (!api)
        return gn_fail(err, ENOSYS, NULL, "this build serves no vGPU of %s",
                       boot->platform->ops->info->name);
    struct gn_vgpu *v =
        aligned_alloc(_Alignof(struct gn_vgpu), gn_align_up(sizeof *v, _Alignof(struct gn_vgpu)));
    if (!v)
        return gn_fail(err, ENOMEM, NULL, "out of memory");
    memset(v, 0, sizeof *v);
    int rc = gn_vgpu_start_in_process(v, boot, api);
    *ret = v->listens ? v : NULL; /* its threads look at it */
    if (!v->listens)
        free(v);
    return rc ? gn_fail(err, -rc, NULL, "cannot start a vGPU in this program: %s", strerror(-rc))
              : 0;
}
