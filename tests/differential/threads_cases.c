/* SPDX-License-Identifier: Apache-2.0 */
/* Many threads at once, on queues of their own and on one queue; only totals are recorded. */
#include "difftest.h"

enum { THREADS = 16, ROUNDS = 50, WORDS = 128 };

struct job {
    pthread_t thread;
    struct env *env;
    int number, bad;
    bool shared_queue;
    uint64_t hash;
};

static void *run_job(void *arg)
{
    struct job *job = arg;
    struct env *env = job->env;
    cl_int code = CL_SUCCESS;
    int words[WORDS] = {0};
    size_t global = WORDS;
    cl_command_queue queue =
        job->shared_queue ? env->queue : clCreateCommandQueue(env->context, env->device, 0, &code);
    job->bad += code != CL_SUCCESS;
    cl_mem mem = clCreateBuffer(env->context, CL_MEM_COPY_HOST_PTR, sizeof(words), words, &code);
    job->bad += code != CL_SUCCESS;
    cl_kernel kernel = clCreateKernel(env->program, "add", &code);
    job->bad += code != CL_SUCCESS;
    job->bad += clSetKernelArg(kernel, 0, sizeof(mem), &mem) != CL_SUCCESS;
    for (int round = 0; round < ROUNDS; round++) {
        int k = job->number * 100 + round;
        cl_event event = NULL;
        job->bad += clSetKernelArg(kernel, 1, sizeof(k), &k) != CL_SUCCESS;
        job->bad += clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, NULL, 0, NULL,
                                           &event) != CL_SUCCESS;
        if (round % 5 == 0)
            job->bad += clWaitForEvents(1, &event) != CL_SUCCESS;
        job->bad += clReleaseEvent(event) != CL_SUCCESS;
        if (round % 10 == 0) {
            cl_mem scratch = clCreateBuffer(env->context, 0, 1000, NULL, &code);
            job->bad += code != CL_SUCCESS;
            job->bad += clReleaseMemObject(scratch) != CL_SUCCESS;
        }
    }
    job->bad += clEnqueueReadBuffer(queue, mem, CL_TRUE, 0, sizeof(words), words, 0, NULL, NULL) !=
                CL_SUCCESS;
    job->hash = hash_bytes(words, sizeof(words));
    job->bad += clReleaseKernel(kernel) != CL_SUCCESS;
    job->bad += clReleaseMemObject(mem) != CL_SUCCESS;
    if (!job->shared_queue)
        job->bad += clReleaseCommandQueue(queue) != CL_SUCCESS;
    return NULL;
}

static void run_all(bool shared_queue)
{
    struct env env;
    static struct job jobs[THREADS];
    env_init(&env);
    env_program(&env);
    for (int i = 0; i < THREADS; i++) {
        jobs[i] = (struct job){.env = &env, .number = i, .shared_queue = shared_queue};
        if (pthread_create(&jobs[i].thread, NULL, run_job, &jobs[i]))
            case_end("no thread");
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(jobs[i].thread, NULL);
        note("thread %d: %d wrong, result %016llx", i, jobs[i].bad,
             (unsigned long long)jobs[i].hash);
    }
    env_fini(&env);
}

static void own_queues(void)
{
    run_all(false);
}

static void one_queue(void)
{
    run_all(true);
}

static const struct diff_case threads_cases[] = {
    {"own_queues", own_queues},
    {"one_queue", one_queue},
};
DIFF_FAMILY(threads);
