/* SPDX-License-Identifier: Apache-2.0 */
/* What an SMTP server says. */
#include "http/smtp_reply.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

/* A word, in any case. */
static bool smtp_reply_word_is(const char *word, size_t len, const char *wanted)
{
    return len == strlen(wanted) && strncasecmp(word, wanted, len) == 0;
}

/* "STARTTLS", "AUTH PLAIN LOGIN" */
static void smtp_reply_read_extension(const char *text, size_t len, struct smtp_reply *ret)
{
    bool is_auth = false;

    for (size_t at = 0, n; at < len; at += n + 1) {
        const char *space = memchr(text + at, ' ', len - at);

        n = space ? (size_t)(space - text) - at : len - at;
        if (!at)
            is_auth = smtp_reply_word_is(text, n, "AUTH");
        if (!at && smtp_reply_word_is(text, n, "STARTTLS"))
            ret->has_starttls = true;
        ret->has_plain |= is_auth && smtp_reply_word_is(text + at, n, "PLAIN");
        ret->has_login |= is_auth && smtp_reply_word_is(text + at, n, "LOGIN");
    }
}

static void smtp_reply_keep_text(const char *text, size_t len, struct smtp_reply *ret)
{
    size_t fits = AQ_MIN(len, sizeof(ret->text) - 1);

    for (size_t i = 0; i < fits; i++)
        ret->text[i] = (char)(isprint((unsigned char)text[i]) ? text[i] : '?');
    ret->text[fits] = '\0';
}

/* "250-text" or "250 text", or "250" alone. */
static int smtp_reply_read_line(const char *line, size_t len, bool is_first, bool *ret_is_last,
                                struct smtp_reply *ret, struct aq_error *err)
{
    unsigned code = 0;

    for (size_t i = 0; i < 3; i++) {
        if (i >= len || !isdigit((unsigned char)line[i]))
            return aq_fail(err, EPROTO, "the server said what is no reply of SMTP");
        code = code * 10 + (unsigned)(line[i] - '0');
    }
    if (code < 200 || code > 599 || (!is_first && code != ret->code)
        || (len > 3 && !strchr(" -", line[3])))
        return aq_fail(err, EPROTO, "the server said what is no reply of SMTP");
    ret->code = code;
    *ret_is_last = len == 3 || line[3] == ' ';
    smtp_reply_keep_text(line + AQ_MIN(len, 4), len - AQ_MIN(len, 4), ret);
    smtp_reply_read_extension(line + AQ_MIN(len, 4), len - AQ_MIN(len, 4), ret);
    return 0;
}

ssize_t smtp_reply_read(const char *bytes, size_t len, struct smtp_reply *ret, struct aq_error *err)
{
    bool is_last = false;
    size_t at = 0;

    *ret = (struct smtp_reply){ 0 };
    while (!is_last) {
        const char *end = memchr(bytes + at, '\n', AQ_MIN(len, SMTP_REPLY_MAX) - at);
        size_t line;

        if (!end && len >= SMTP_REPLY_MAX)
            return aq_fail(err, EPROTO, "the server's reply has more than %d bytes",
                           SMTP_REPLY_MAX);
        if (!end)
            return 0;
        line = (size_t)(end - bytes) - at;
        line -= line && bytes[at + line - 1] == '\r';
        if (smtp_reply_read_line(bytes + at, line, !at, &is_last, ret, err) < 0)
            return -EPROTO;
        at = (size_t)(end - bytes) + 1;
    }
    return (ssize_t)at;
}
