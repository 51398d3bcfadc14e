/* SPDX-License-Identifier: Apache-2.0 */
/* check.h - what a program needs of its machine, looked at one thing after the other
 *
 * A program has a table of checks; each looks at one thing and says how it is,
 * what that means for sessions and which command mends it. "aliquot doctor"
 * runs the programs and shows what they found.
 */
#ifndef AQ_CHECK_CHECK_H
#define AQ_CHECK_CHECK_H

#include <stdbool.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/error.h"

enum check_level {
    CHECK_OK,
    CHECK_WARNING, /* it works, but not as well as it could */
    CHECK_MISSING, /* what the part is for does not work */
    CHECK_ABSENT,  /* not here, which is fine unless the part was asked for */
    CHECK_SKIPPED, /* nothing to say: another check has said it */
};
const char *check_level_name(enum check_level level); /* "ok", "warning" ... */

struct finding {
    enum check_level level;
    char text[400];    /* how it is */
    char meaning[240]; /* what that means for sessions; "" = nothing */
    char remedy[240];  /* a command, or several with "; " between; "" = none */
};

struct check {
    const char *id;    /* "agent.state"; NULL ends a table */
    const char *part;  /* what it is needed for: "agent" */
    const char *title; /* "state folder" */
    void (*look)(void *data, struct finding *ret);
};

/* Fill level and text; the rest is emptied. */
void finding_say(struct finding *finding, enum check_level level, const char *fmt, ...)
    AQ_PRINTF(3, 4);
/* And what it means, or what to do. */
void finding_mean(struct finding *finding, const char *fmt, ...) AQ_PRINTF(2, 3);
void finding_mend(struct finding *finding, const char *fmt, ...) AQ_PRINTF(2, 3);

/* Look at what belongs to the named parts (count 0 = all), and write one JSON
 * object a line as soon as it is known: id, part, title, level, text, meaning
 * and remedy. -EINVAL for a part that the table does not have, -EIO.
 */
int checks_run(const struct check *table, void *data, char *const *parts, int count, FILE *out,
               struct aq_error *err);

#endif
