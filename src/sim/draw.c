/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses times and draws random numbers from them. `gantry sim` calls it on its main thread. It
 * never draws in floating point, because results would differ between machines.
 */
#include "sim/draw.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "sched/sched.h"

/* ---- numbers: splitmix64 */

static uint64_t scramble(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static uint64_t next(struct gn_sim_random *r)
{
    return scramble(r->state += UINT64_C(0x9e3779b97f4a7c15));
}

void gn_sim_random_init(struct gn_sim_random *r, uint64_t seed, uint64_t stream)
{
    r->state = scramble(seed + 1) ^ scramble(scramble(stream + UINT64_C(0x632be59bd9b4e019)));
}

/* Returns part / 2^64 of n. */
static uint64_t scaled(uint64_t n, uint64_t part)
{
    return (uint64_t)((gn_sim_wide)n * part >> 64);
}

/* Von Neumann's method: the lengths of falling runs of numbers replace the logarithm. */
static uint64_t exponential(uint64_t mean, struct gn_sim_random *r)
{
    for (uint64_t whole = 0;; whole++) {
        const uint64_t first = next(r);
        uint64_t last = first, drawn;
        unsigned n = 1;
        while ((drawn = next(r)) < last) {
            last = drawn;
            n++;
        }
        if (n % 2)
            return mean * whole + scaled(mean, first);
    }
}

uint64_t gn_sim_draw(const struct gn_sim_time *t, struct gn_sim_random *r)
{
    switch (t->shape) {
    case GN_SIM_CONSTANT:
        break;
    case GN_SIM_BETWEEN:
        return t->ns[0] + scaled(t->ns[1] - t->ns[0] + 1, next(r));
    case GN_SIM_EXPONENTIAL:
        return exponential(t->ns[0], r);
    case GN_SIM_ONE_OF:
        return t->ns[scaled(t->n, next(r))];
    }
    return t->ns[0];
}

double gn_sim_time_mean(const struct gn_sim_time *t)
{
    double sum = 0;
    for (uint32_t i = 0; i < t->n; i++)
        sum += (double)t->ns[i];
    return sum / t->n;
}

/* ---- text */

/*
 * Parses digits, optionally with a point and more digits, in units of 1/scale (a power of ten).
 * Finer digits are cut off.
 */
static bool take_decimal(const char **text, uint64_t scale, uint64_t *ret)
{
    const char *p = *text;
    uint64_t whole = 0, part = 0, step = scale;
    if (*p < '0' || *p > '9')
        return false;
    for (; *p >= '0' && *p <= '9'; p++)
        if (!gn_mul_u64(whole, 10, &whole) || !gn_add_u64(whole, (uint64_t)(*p - '0'), &whole))
            return false;
    if (*p == '.') {
        if (p[1] < '0' || p[1] > '9')
            return false;
        for (p++; *p >= '0' && *p <= '9'; p++)
            part += (step /= 10) * (uint64_t)(*p - '0');
    }
    *text = p;
    return gn_mul_u64(whole, scale, &whole) && gn_add_u64(whole, part, ret);
}

static const struct {
    const char *name;
    uint64_t ns;
} units[] = {{"ns", 1},
             {"us", 1000},
             {"ms", 1000000},
             {"s", 1000000000},
             {"min", UINT64_C(60000000000)},
             {"h", UINT64_C(3600000000000)}};

/* Parses n characters. */
static bool parse_ns(const char *text, size_t n, uint64_t *ret)
{
    char copy[48];
    const char *p = copy;
    uint64_t billionths;
    if (n >= sizeof copy)
        return false;
    memcpy(copy, text, n);
    copy[n] = 0;
    if (!take_decimal(&p, 1000000000, &billionths))
        return false;
    if (!*p && !billionths) {
        *ret = 0;
        return true;
    }
    for (size_t i = 0; i < GN_ARRAY_SIZE(units); i++) {
        if (strcmp(p, units[i].name) != 0)
            continue;
        const gn_sim_wide ns = (gn_sim_wide)billionths * units[i].ns / 1000000000;
        if (ns > GN_SIM_MAX_NS)
            return false;
        *ret = (uint64_t)ns;
        return true;
    }
    return false;
}

static const char how_time[] =
    "write a number and ns, us, ms, s, min or h, at most 30 days, as 200us";

int gn_sim_parse_ns(const char *text, uint64_t *ret, struct gn_error *err)
{
    if (parse_ns(text, strlen(text), ret))
        return 0;
    return gn_fail(err, EINVAL, how_time, "\"%.100s\" is not a time", text);
}

int gn_sim_parse_time(const char *text, struct gn_sim_time *ret, struct gn_error *err)
{
    struct gn_sim_time t = {.shape = GN_SIM_CONSTANT};
    const char *dots = strstr(text, "..");
    if (strncmp(text, "exp:", 4) == 0) {
        t.shape = GN_SIM_EXPONENTIAL;
        t.n = parse_ns(text + 4, strlen(text + 4), &t.ns[0]);
    } else if (dots) {
        t.shape = GN_SIM_BETWEEN;
        if (parse_ns(text, (size_t)(dots - text), &t.ns[0]) &&
            parse_ns(dots + 2, strlen(dots + 2), &t.ns[1]))
            t.n = 2;
        if (t.n && t.ns[0] > t.ns[1])
            return gn_fail(err, EINVAL, "write the lesser one first",
                           "\"%.100s\" ends before it begins", text);
    } else {
        for (const char *p = text; p && t.n < GN_SIM_MAX_CHOICES;) {
            size_t n = strcspn(p, "/");
            if (!parse_ns(p, n, &t.ns[t.n])) {
                t.n = 0;
                break;
            }
            t.n++;
            p = p[n] ? p + n + 1 : NULL;
            if (p && t.n == GN_SIM_MAX_CHOICES)
                return gn_fail(err, EINVAL, "keep 8 of them", "\"%.100s\" has too many choices",
                               text);
        }
        t.shape = t.n > 1 ? GN_SIM_ONE_OF : GN_SIM_CONSTANT;
    }
    if (!t.n)
        return gn_fail(err, EINVAL, "write it as 200us, 100us..300us, exp:200us or 20us/20us/5ms",
                       "\"%.100s\" is not a time", text);
    *ret = t;
    return 0;
}

int gn_sim_parse_part(const char *what, const char *text, uint32_t *ret, struct gn_error *err)
{
    static const char fix[] = "write a part of a device, from 0.000001 to 1, or per cent, as 25%";
    const char *p = text;
    uint64_t millionths;
    if (!take_decimal(&p, GN_SCHED_WHOLE * UINT64_C(100), &millionths) ||
        (*p && strcmp(p, "%") != 0))
        return gn_fail(err, EINVAL, fix, "%s cannot be \"%.100s\"", what, text);
    millionths /= *p == '%' ? 10000 : 100;
    if (millionths > GN_SCHED_WHOLE)
        return gn_fail(err, EINVAL, fix, "%s of \"%.100s\" is more than a device has", what, text);
    if (!millionths)
        return gn_fail(err, EINVAL, "leave it out for none", "%s of \"%.100s\" is nothing", what,
                       text);
    *ret = (uint32_t)millionths;
    return 0;
}

int gn_sim_parse_count(const char *what, const char *text, uint32_t least, uint32_t most,
                       uint32_t *ret, struct gn_error *err)
{
    const size_t n = strlen(text);
    unsigned long value = 0;
    char fix[64];
    if (n && n <= 9 && strspn(text, "0123456789") == n)
        value = strtoul(text, NULL, 10);
    if (n && n <= 9 && strspn(text, "0123456789") == n && value >= least && value <= most) {
        *ret = (uint32_t)value;
        return 0;
    }
    snprintf(fix, sizeof fix, "write a whole number from %" PRIu32 " to %" PRIu32, least, most);
    return gn_fail(err, EINVAL, fix, "\"%.100s\" is not %s", text, what);
}

char *gn_sim_format_ns(uint64_t ns, char *ret)
{
    size_t u = 0;
    while (u < 3 && ns >= units[u + 1].ns)
        u++;
    const double n = (double)ns / (double)units[u].ns;
    int digits = snprintf(ret, 24, "%.*f", n < 9.995 ? 2 : n < 99.95 ? 1 : 0, n);
    if (strchr(ret, '.')) {
        while (ret[digits - 1] == '0')
            ret[--digits] = 0;
        if (ret[digits - 1] == '.')
            ret[--digits] = 0;
    }
    snprintf(ret + digits, 24 - (size_t)digits, "%s", units[u].name);
    return ret;
}
