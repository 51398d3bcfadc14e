/* SPDX-License-Identifier: Apache-2.0 */
/* smtp.h - sends a mail through an SMTP server (RFC 5321, 3207, 4954)
 *
 * One connection for each mail. With use_tls nothing but the greetings goes in the clear, and the
 * server's certificate is verified; a login needs it.
 * Loop's thread.
 */
#ifndef AQ_HTTP_SMTP_H
#define AQ_HTTP_SMTP_H

#include <uv.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "http/stream.h"
#include "http/url.h"

struct smtp;

#define SMTP_ADDRESS_MAX 254
#define SMTP_TLS_PORT 465 /* TLS from the first byte (RFC 8314), elsewhere by STARTTLS */

/* Texts are the mail's, all but a login's are needed. */
struct smtp_mail {
    struct address server;
    bool use_tls;
    unsigned timeout_msec; /* for all of it */
    char *username, *password;
    char *from, **to;
    size_t to_count;
    char *subject, *text; /* UTF-8 */
};

void smtp_mail_free(struct smtp_mail *mail);

/* "name@host" of ASCII that needs no quotes. */
bool smtp_address_is_valid(const char *text) AQ_UNTRUSTED;

/* Append the mail's header and text. */
void smtp_mail_write(const struct smtp_mail *mail, const char *own_name, struct strbuf *out);

struct smtp_options {
    struct tls_context *tls; /* for use_tls; a reference is taken */
    /* As in stream_options. */
    bool (*may_reach)(void *data, const struct sockaddr *addr);
    void *reach_data;
};

/* err->code 0: the server has taken the mail for each of 'to'. With 'is_final' it would be refused
 * the next time, too.
 */
typedef void smtp_done_fn(void *data, const struct aq_error *err, bool is_final);

/* 'mail' is borrowed until smtp_free(), which must not come from within 'done'. That is called
 * once, and not from within a call. -EINVAL.
 */
int smtp_send(uv_loop_t *loop, const struct smtp_mail *mail, const struct smtp_options *options,
              smtp_done_fn *done, void *data, struct smtp **ret, struct aq_error *err);
/* Breaks off. NULL is fine. */
void smtp_free(struct smtp *smtp);

#endif
