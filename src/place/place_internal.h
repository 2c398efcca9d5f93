/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_PLACE_INTERNAL_H
#define GN_PLACE_INTERNAL_H

#include "place/place.h"

/* For the files of src/place alone. */

/* Finds the run of chunk k: chunks *first to *end - 1. */
void gn_place_run(const struct gn_place_vgpu *v, uint32_t k, uint32_t *first, uint32_t *end);

/*
 * Adds the run of chunk k of `from` to the plan, unless a rule forbids it: it is needed by the
 * plan's own vGPU, pinned, of a vGPU that waits for its first turn, or part of a reserve.
 */
bool gn_place_take(struct gn_place *p, struct gn_place_plan *plan, struct gn_place_vgpu *from,
                   uint32_t k);
/* Takes slots by number until the plan has n free ones. False: there are not enough. */
bool gn_place_take_any(struct gn_place *p, struct gn_place_plan *plan, uint32_t n);
/* The plan of policies with addresses. */
bool gn_place_plan_addressed(struct gn_place *p, struct gn_place_vgpu *v,
                             struct gn_place_plan *ret);

/* Makes a list, by their links `sorted`, of the vGPUs that are not idle, by age. */
void gn_place_list_awake(struct gn_place *p, struct gn_list *head);
/* Sorts such a list; vGPUs of which neither is before the other stay in their order. */
void gn_place_sort(const struct gn_place *p, struct gn_list *head,
                   bool (*before)(const struct gn_place *, const struct gn_place_vgpu *,
                                  const struct gn_place_vgpu *));
/* Makes the candidates' addresses the present ones. */
void gn_place_commit(struct gn_place *p, const struct gn_list *sorted);

/* Puts the vGPU into gn_place.wanting, or takes it out, as its state requires. */
void gn_place_update(struct gn_place *p, struct gn_place_vgpu *v);
/* residency.c: the device time that a period must bring, by the vGPU's weight, for these copies. */
uint64_t gn_place_theta(const struct gn_place *p, const struct gn_place_vgpu *v, uint64_t copy_ns);
void gn_place_charge(struct gn_place *p, struct gn_place_vgpu *v, uint64_t used_ns);
/* Of a vGPU that gets work: its pause counts as use if it kept memory that others waited for. */
void gn_place_charge_pause(struct gn_place *p, struct gn_place_vgpu *v, uint64_t now_ns);
/* The swap begins a period of its vGPU, and ends those of its victims; before these lose slots. */
void gn_place_charge_swap(struct gn_place *p, const struct gn_place_plan *plan);
/* Of a vGPU that gets work: bounds how far it is behind. */
void gn_place_raise_tag(struct gn_place *p, struct gn_place_vgpu *v);
/* The same of a vGPU that is swapped in, against the plan's victims. */
void gn_place_bound_tag(struct gn_place *p, const struct gn_place_plan *plan);

RB_PROTOTYPE(gn_place_wanting, gn_place_vgpu, wanting, compare_wanting)

#endif
