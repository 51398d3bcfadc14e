/* SPDX-License-Identifier: Apache-2.0 */
/* E-mail addresses of accounts. */
#include "model/email.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"

#define EMAIL_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

/* Bytes at the front of which each is in 'ascii', or of a character beyond ASCII. */
static size_t email_span(const char *text, const char *ascii)
{
    size_t len = 0;

    while (text[len] && ((unsigned char)text[len] >= 0x80 || strchr(ascii, text[len])))
        len++;
    return len;
}

int email_check_new(const char *text, struct aq_error *err)
{
    size_t len = strlen(text), local, domain;
    uint32_t code;

    if (!utf8_is_shown(text, len, &code))
        return aq_fail_field(err, EINVAL, "email",
                             "not an e-mail address: character U+%04X is not allowed",
                             (unsigned)code);
    local = email_span(text, EMAIL_LETTERS "._+-'=/%");
    if (text[local] && text[local] != '@')
        return aq_fail_field(err, EINVAL, "email",
                             "not an e-mail address: '%c' is not allowed; use letters, digits and "
                             ". _ + - ' = / %% before the '@'",
                             text[local]);
    if (!local || text[0] == '-' || text[local] != '@')
        return aq_fail_field(err, EINVAL, "email",
                             "not an e-mail address; write NAME@DOMAIN, where NAME does not begin "
                             "with '-'");
    domain = email_span(text + local + 1, EMAIL_LETTERS "._-");
    if (!domain || text[local + 1 + domain])
        return aq_fail_field(err, EINVAL, "email",
                             "not an e-mail address; use letters, digits, '.', '_' and '-' behind "
                             "the '@'");
    return 0;
}
