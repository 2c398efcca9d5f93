/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GN_CTL_DOCTOR_H
#define GN_CTL_DOCTOR_H

#include "client/client.h"
#include "ctl/ctl.h"

/* The findings of `gantry doctor` so far. */
enum gn_doctor_status { GN_DOCTOR_OK, GN_DOCTOR_WARN, GN_DOCTOR_FAIL };

struct gn_doctor {
    json_t *findings; /* {check, status, finding, fix} each */
    enum gn_doctor_status worst;
    int n_failed;
    json_t *first_failure; /* borrowed from findings */
    bool strict;           /* --strict */
    bool prints; /* findings are printed as they are added; otherwise all at the end, as JSON */
    const char *connect;            /* --connect */
    json_t *gantryd;                /* the reply to `status`; NULL: gantryd did not answer */
    bool daemon_answers;            /* gantryd accepts this user's programs */
    bool daemon_refuses;            /* gantryd rejects this user's programs and has said why */
    struct gn_client_places places; /* valid if places_known */
    bool places_known;
};

/*
 * Adds a finding of one line. `fix` may be NULL. Returns the finding's object, which the list owns.
 */
json_t *gn_doctor_add(struct gn_doctor *d, const char *check, enum gn_doctor_status status,
                      const char *fix, const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* doctor_gantry.c: gantryd and this installation. */
void gn_doctor_check_daemon(struct gn_doctor *d);
/* Whether gantryd accepts no new programs. */
bool gn_doctor_is_drained(const struct gn_doctor *d);
void gn_doctor_check_installation(struct gn_doctor *d);
/* doctor_machine.c: the kernel's features and the processors. */
void gn_doctor_check_kernel(struct gn_doctor *d);
void gn_doctor_check_processors(struct gn_doctor *d);

/*
 * Runs `work`, which may crash, hang or print, in a child process. `work` fills a result of n
 * bytes, which is copied to *ret. False if the child died or timed out; *ret is then untouched.
 */
bool gn_doctor_try(void (*work)(void *arg, void *result), void *arg, void *ret, size_t n);

#endif
