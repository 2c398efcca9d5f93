/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_GUEST_MIGRATE_FOLLOW_MIGRATION_H
#define GN_GUEST_MIGRATE_FOLLOW_MIGRATION_H

#include "guest/core/guest_core.h"

/*
 * The program's part in a migration to another gantryd (docs/moves.md), and in a checkpoint
 * (stopped.h).
 */
extern const struct gn_session_migration_ops gn_session_migration;
/* For struct gn_link's on_move, with the session as ctx. Any thread that reads its messages. */
void gn_session_move_word(void *ctx, uint16_t op, uint32_t number, const struct gn_link_move *what);
/* Whether the migration was called off. Any thread. */
struct gn_moving;
bool gn_moving_is_off(const struct gn_moving *m);
/* Wakes the thread that follows the migration. moving_lock is held. */
void gn_session_moving_wake_locked(struct gn_session *s);

#endif
