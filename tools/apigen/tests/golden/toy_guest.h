/* SPDX-License-Identifier: Apache-2.0 */
/* Written by apigen: do not edit. */
#ifndef GN_TOY_GUEST_H
#define GN_TOY_GUEST_H

#include "guest/toy/toy_guest_rt.h"

/* Requests: encode, send, wait. */
toy_result gn_send_toyAsk(struct gn_session *session, toy_card card, toy_question question, size_t room, void *answer, size_t *used);
toy_result gn_send_toyMakeBlock(struct gn_session *session, struct gn_object *made, toy_card card, size_t bytes);
toy_result gn_send_toyMakeStream(struct gn_session *session, struct gn_object *made, toy_card card);
toy_result gn_send_toyCopy(struct gn_session *session, toy_stream stream, toy_block from, toy_block to, const size_t *corner, size_t bytes, unsigned n_after, const toy_flag *after, const struct gn_command_show *show);
toy_result gn_send_toySplit(struct gn_session *session, toy_block block, unsigned n, size_t *pieces);
toy_result gn_send_Fill(struct gn_session *session, toy_stream stream, unsigned n, const toy_block *blocks, const size_t *corner, const struct gn_area_ref *bytes, unsigned n_after, const toy_flag *after, const struct gn_command_show *show);

/* Entry points: generated, or handwritten where the description says local or stub. */
toy_result gn_toyAsk(toy_card card, toy_question question, size_t room, void *answer, size_t *used);
toy_block gn_toyMakeBlock(toy_card card, size_t bytes, toy_result *why);
toy_stream gn_toyMakeStream(toy_card card, toy_result *why);
toy_result gn_toyFreeBlock(toy_block block);
toy_result gn_toyOnEnd(toy_card card, void(*ended)(void *));
toy_result gn_toyCopy(toy_stream stream, toy_block from, toy_block to, const size_t *corner, size_t bytes, unsigned n_after, const toy_flag *after, toy_flag *done);
toy_result gn_toySplit(toy_block block, unsigned n, size_t *pieces);
toy_result gn_toyNever(toy_card card);

/* What generated entry points expect from handwritten files. */
toy_result gn_local_toyAsk(toy_card card, toy_question question, size_t room, void *answer, size_t *used);

/* Where a message's inputs are named: offsets of its gn_spans, the last one 0. */
const uint16_t *gn_toy_inputs(uint16_t op);

/* The function behind the name of an entry point that is in the table, or NULL. */
void *gn_toy_function(const char *name);
/* The function behind the name of an extension's entry point, and which extension that is; or NULL. */
void *gn_toy_extension_function(const char *name, const char **ret_extension);

#endif
