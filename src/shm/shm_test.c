/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of this folder's tests. */
#include "shm/shm_test.h"

#include <sched.h>
#include <stdio.h>

void gn_test_wait_until_asleep(pid_t tid)
{
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)tid);
    for (;;) {
        FILE *f = fopen(path, "r");
        assert_non_null(f);
        assert_non_null(fgets(line, sizeof line, f));
        fclose(f);
        char *after_name = strrchr(line, ')');
        assert_non_null(after_name);
        if (after_name[2] == 'S')
            return;
        sched_yield();
    }
}
