/* SPDX-License-Identifier: Apache-2.0 */
/* smtp_reply.h - what an SMTP server says (RFC 5321, 4.2) */
#ifndef AQ_HTTP_SMTP_REPLY_H
#define AQ_HTTP_SMTP_REPLY_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

#define SMTP_REPLY_MAX 8192 /* bytes of one, all lines together */

struct smtp_reply {
    unsigned code;
    char text[200]; /* of its last line, printable */
    /* Of the answer to EHLO. */
    bool has_starttls, has_plain, has_login;
};

/* The reply at the front: its bytes, 0 if it goes on, -EPROTO if it is none or too long. */
ssize_t smtp_reply_read(const char *bytes, size_t len, struct smtp_reply *ret,
                        struct aq_error *err) AQ_UNTRUSTED;

#endif
