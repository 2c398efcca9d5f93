/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_API_OPENCL_CARRIED_H
#define GN_API_OPENCL_CARRIED_H

#include <CL/cl.h>

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define GN_COMMAND_BUFFER "cl_khr_command_buffer"

/*
 * Extensions that add no entry point, or whose entry points Gantry carries. Gantry advertises no
 * other: a program would miss its calls.
 */
static const struct gn_carried {
    const char *name;
    cl_version from, below; /* the carried versions; both 0: all */
} gn_carried[] = {
    {"cl_khr_3d_image_writes", 0, 0},
    {"cl_khr_async_work_group_copy_fence", 0, 0},
    {"cl_khr_byte_addressable_store", 0, 0},
    /* 0.9.4 adds entry points, 0.9.5 a parameter to all recording calls. */
    {GN_COMMAND_BUFFER, CL_MAKE_VERSION(0, 9, 0), CL_MAKE_VERSION(0, 9, 4)},
    {"cl_khr_create_command_queue", 0, 0},
    {"cl_khr_depth_images", 0, 0},
    {"cl_khr_device_enqueue_local_arg_types", 0, 0},
    {"cl_khr_device_uuid", 0, 0},
    {"cl_khr_expect_assume", 0, 0},
    {"cl_khr_extended_async_copies", 0, 0},
    {"cl_khr_extended_bit_ops", 0, 0},
    {"cl_khr_extended_versioning", 0, 0},
    {"cl_khr_fp16", 0, 0},
    {"cl_khr_fp64", 0, 0},
    {"cl_khr_global_int32_base_atomics", 0, 0},
    {"cl_khr_global_int32_extended_atomics", 0, 0},
    {"cl_khr_icd", 0, 0},
    {"cl_khr_il_program", 0, 0},
    {"cl_khr_image2d_from_buffer", 0, 0},
    {"cl_khr_int64_base_atomics", 0, 0},
    {"cl_khr_int64_extended_atomics", 0, 0},
    {"cl_khr_integer_dot_product", 0, 0},
    {"cl_khr_local_int32_base_atomics", 0, 0},
    {"cl_khr_local_int32_extended_atomics", 0, 0},
    {"cl_khr_mipmap_image", 0, 0},
    {"cl_khr_mipmap_image_writes", 0, 0},
    {"cl_khr_pci_bus_info", 0, 0},
    {"cl_khr_priority_hints", 0, 0},
    {"cl_khr_select_fprounding_mode", 0, 0},
    {"cl_khr_spir", 0, 0},
    {"cl_khr_spirv_linkonce_odr", 0, 0},
    {"cl_khr_spirv_no_integer_wrap_decoration", 0, 0},
    {"cl_khr_srgb_image_writes", 0, 0},
    {"cl_khr_subgroup_ballot", 0, 0},
    {"cl_khr_subgroup_clustered_reduce", 0, 0},
    {"cl_khr_subgroup_extended_types", 0, 0},
    {"cl_khr_subgroup_named_barrier", 0, 0},
    {"cl_khr_subgroup_non_uniform_arithmetic", 0, 0},
    {"cl_khr_subgroup_non_uniform_vote", 0, 0},
    {"cl_khr_subgroup_rotate", 0, 0},
    {"cl_khr_subgroup_shuffle", 0, 0},
    {"cl_khr_subgroup_shuffle_relative", 0, 0},
    {"cl_khr_subgroups", 0, 0},
    {"cl_khr_throttle_hints", 0, 0},
    {"cl_khr_work_group_uniform_arithmetic", 0, 0},
    {"cl_amd_device_attribute_query", 0, 0},
    {"cl_amd_media_ops", 0, 0},
    {"cl_amd_media_ops2", 0, 0},
    {"cl_amd_popcnt", 0, 0},
    {"cl_ext_cxx_for_opencl", 0, 0},
    {"cl_ext_float_atomics", 0, 0},
    {"cl_intel_bfloat16_conversions", 0, 0},
    {"cl_intel_device_attribute_query", 0, 0},
    {"cl_intel_required_subgroup_size", 0, 0},
    {"cl_intel_subgroup_local_block_io", 0, 0},
    {"cl_intel_subgroups", 0, 0},
    {"cl_intel_subgroups_char", 0, 0},
    {"cl_intel_subgroups_long", 0, 0},
    {"cl_intel_subgroups_short", 0, 0},
    {"cl_nv_compiler_options", 0, 0},
    {"cl_nv_copy_opts", 0, 0},
    {"cl_nv_device_attribute_query", 0, 0},
    {"cl_nv_pragma_unroll", 0, 0},
};

/* The carried extension of this name, or NULL. */
static inline const struct gn_carried *gn_carried_named(const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof gn_carried / sizeof *gn_carried; i++)
        if (strlen(gn_carried[i].name) == n && memcmp(gn_carried[i].name, name, n) == 0)
            return &gn_carried[i];
    return NULL;
}

static inline bool gn_carries_version(const struct gn_carried *c, cl_version version)
{
    return !c->below || (version >= c->from && version < c->below);
}

/*
 * The extension's version in a driver's list of n, whose names may lack their terminating zeros. 0:
 * absent, or a version that is not carried.
 */
static inline cl_version gn_carried_version(const struct gn_carried *c, const cl_name_version *list,
                                            size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strncmp(list[i].name, c->name, sizeof list[i].name) == 0 &&
            gn_carries_version(c, list[i].version))
            return list[i].version;
    return 0;
}

#endif
