/* SPDX-License-Identifier: Apache-2.0 */
/* error.c - what went wrong, in the caller's own memory */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"

void aq_closep(int *fd)
{
    int saved = errno;

    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
    errno = saved;
}

static void error_set_error(struct aq_error *err, int code, const char *kind, const char *field)
{
    err->code = code;
    err->kind = kind;
    (void)snprintf(err->field, sizeof(err->field), "%s", field ? field : "");
}

/* Fill code, kind, field and text from the arguments of an aq_fail_*() call. */
#define FILL(err, code, kind, field, fmt)                                  \
    do {                                                                   \
        if (err) {                                                         \
            va_list args_;                                                 \
            error_set_error(err, code, kind, field);                       \
            va_start(args_, fmt);                                          \
            (void)vsnprintf((err)->text, sizeof((err)->text), fmt, args_); \
            va_end(args_);                                                 \
            utf8_drop_partial((err)->text);                                \
        }                                                                  \
    } while (0)

int aq_fail(struct aq_error *err, int code, const char *fmt, ...)
{
    FILL(err, code, NULL, NULL, fmt);
    return -code;
}

int aq_fail_oom(struct aq_error *err)
{
    return aq_fail(err, ENOMEM, "out of memory");
}

int aq_fail_errno(struct aq_error *err, const char *fmt, ...)
{
    int code = errno ? errno : EIO;

    FILL(err, code, NULL, NULL, fmt);
    if (err) {
        size_t len = strlen(err->text);

        (void)snprintf(err->text + len, sizeof(err->text) - len, ": %s", strerror(code));
    }
    return -code;
}

int aq_fail_field(struct aq_error *err, int code, const char *field, const char *fmt, ...)
{
    FILL(err, code, NULL, field, fmt);
    return -code;
}

int aq_fail_kind(struct aq_error *err, int code, const char *kind, const char *fmt, ...)
{
    FILL(err, code, kind, NULL, fmt);
    return -code;
}

int aq_fail_as(struct aq_error *err, int code, const char *kind, const char *field, const char *fmt,
               ...)
{
    FILL(err, code, kind, field, fmt);
    return -code;
}

int aq_error_wrap(struct aq_error *err, const char *fmt, ...)
{
    char inner[sizeof(err->text)];
    va_list args;
    size_t len;

    if (!err)
        return -EIO;
    memcpy(inner, err->text, sizeof(inner));
    va_start(args, fmt);
    (void)vsnprintf(err->text, sizeof(err->text), fmt, args);
    va_end(args);
    len = strlen(err->text);
    (void)snprintf(err->text + len, sizeof(err->text) - len, ": %s", inner);
    return -err->code;
}
