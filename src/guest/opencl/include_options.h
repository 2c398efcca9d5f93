/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_INCLUDE_OPTIONS_H
#define GN_INCLUDE_OPTIONS_H

/*
 * Calls each(ctx, path) for every folder that -I names in a build's options (NULL: none): -Idir and
 * -I dir, plain or quoted. The path is valid during the call.
 */
void gn_include_options(const char *options, void (*each)(void *ctx, const char *path), void *ctx);

#endif
