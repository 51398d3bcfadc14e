/* SPDX-License-Identifier: Apache-2.0 */
/* error.h - what went wrong, in the caller's own memory
 *
 * Every call that can fail returns 0 (or a count) or -errno and fills the
 * caller's struct aq_error, which needs no release. A NULL 'err' is fine
 * everywhere. The text says what, why and what to do next; 'field' names the
 * offending input (a JSON field, slot, device or option), 'kind' is a stable
 * word for programs (the slug of a problem document) or NULL for the default
 * of 'code'.
 */
#ifndef AQ_BASE_ERROR_H
#define AQ_BASE_ERROR_H

#include "base/cleanup.h"

struct aq_error {
    int code;         /* positive errno; 0 = no error */
    const char *kind; /* static string or NULL */
    char field[80];   /* "" = none */
    char text[360];
};

/* Fill 'err' and return -code. 'code' is a positive errno. */
int aq_fail(struct aq_error *err, int code, const char *fmt, ...) AQ_PRINTF(3, 4);

/* The same for memory that there is not: ENOMEM, and one text for all of them. */
int aq_fail_oom(struct aq_error *err);

/* The same with errno as code and its text appended after ": ". */
int aq_fail_errno(struct aq_error *err, const char *fmt, ...) AQ_PRINTF(2, 3);

/* The same for a named input. */
int aq_fail_field(struct aq_error *err, int code, const char *field, const char *fmt, ...)
    AQ_PRINTF(4, 5);

/* The same with a kind; 'kind' must be a static string. */
int aq_fail_kind(struct aq_error *err, int code, const char *kind, const char *fmt, ...)
    AQ_PRINTF(4, 5);

/* The same with a kind and a named input. */
int aq_fail_as(struct aq_error *err, int code, const char *kind, const char *field, const char *fmt,
               ...) AQ_PRINTF(5, 6);

/* Put "context: " before the text that is already there; returns -err->code. */
int aq_error_wrap(struct aq_error *err, const char *fmt, ...) AQ_PRINTF(2, 3);

#endif
