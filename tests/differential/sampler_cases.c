/* SPDX-License-Identifier: Apache-2.0 */
/* Samplers, made both ways. */
#include "difftest.h"

static const cl_addressing_mode addressing[] = {
    CL_ADDRESS_NONE,   CL_ADDRESS_CLAMP_TO_EDGE,   CL_ADDRESS_CLAMP,
    CL_ADDRESS_REPEAT, CL_ADDRESS_MIRRORED_REPEAT, 0x1};
static const cl_filter_mode filters[] = {CL_FILTER_NEAREST, CL_FILTER_LINEAR, 0x1};

static void create(void)
{
    struct env env;
    env_init(&env);
    for (cl_bool normalized = 0; normalized < 2; normalized++)
        for (size_t a = 0; a < 6; a++)
            for (size_t f = 0; f < 3; f++) {
                cl_sampler sampler =
                    MAKE(clCreateSampler, env.context, normalized, addressing[a], filters[f]);
                if (!sampler)
                    continue;
                info_sampler_all(sampler);
                CALL(clReleaseSampler, sampler);
            }
    MAKE(clCreateSampler, env.context, 7, CL_ADDRESS_NONE, CL_FILTER_NEAREST);
    MAKE(clCreateSampler, (cl_context)NULL, CL_TRUE, CL_ADDRESS_NONE, CL_FILTER_NEAREST);
    env_fini(&env);
}

static void with_properties(void)
{
    static const cl_sampler_properties lists[][8] = {
        {0},
        {CL_SAMPLER_NORMALIZED_COORDS, CL_FALSE, 0},
        {CL_SAMPLER_ADDRESSING_MODE, CL_ADDRESS_REPEAT, 0},
        {CL_SAMPLER_FILTER_MODE, CL_FILTER_LINEAR, 0},
        {CL_SAMPLER_NORMALIZED_COORDS, CL_TRUE, CL_SAMPLER_ADDRESSING_MODE,
         CL_ADDRESS_MIRRORED_REPEAT, CL_SAMPLER_FILTER_MODE, CL_FILTER_LINEAR, 0},
        {CL_SAMPLER_NORMALIZED_COORDS, CL_TRUE, CL_SAMPLER_NORMALIZED_COORDS, CL_TRUE, 0},
        {CL_SAMPLER_ADDRESSING_MODE, 0x1, 0},
        {CL_SAMPLER_FILTER_MODE, 0x1, 0},
        {0x7777, 1, 0},
    };
    struct env env;
    env_init(&env);
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        cl_sampler sampler = MAKE(clCreateSamplerWithProperties, env.context, lists[i]);
        if (!sampler)
            continue;
        info_sampler_all(sampler);
        CALL(clReleaseSampler, sampler);
    }
    cl_sampler sampler = MAKE(clCreateSamplerWithProperties, env.context, NULL);
    if (sampler) {
        info_sampler_all(sampler);
        CALL(clRetainSampler, sampler);
        CALL(clReleaseSampler, sampler);
        CALL(clReleaseSampler, sampler);
    }
    MAKE(clCreateSamplerWithProperties, (cl_context)NULL, NULL);
    CALL(clRetainSampler, (cl_sampler)NULL);
    CALL(clReleaseSampler, (cl_sampler)NULL);
    cl_uint word = 0;
    CALL(clGetSamplerInfo, (cl_sampler)NULL, CL_SAMPLER_FILTER_MODE, sizeof(word), &word, NULL);
    env_fini(&env);
}

static const struct diff_case sampler_cases[] = {
    {"create", create},
    {"with_properties", with_properties},
};
DIFF_FAMILY(sampler);
