/* SPDX-License-Identifier: Apache-2.0 */
/* The dialogue with an SMTP server: one command, one reply. */
#include "http/smtp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <nettle/base64.h>

#include "base/memory.h"
#include "http/defer.h"
#include "http/smtp_reply.h"

#define OWN_NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-"

/* What was said last, and so what the next reply answers. */
enum smtp_step {
    SMTP_GREETING,
    SMTP_EHLO,
    SMTP_STARTTLS,
    SMTP_PLAIN,
    SMTP_LOGIN,
    SMTP_USERNAME,
    SMTP_PASSWORD,
    SMTP_MAIL,
    SMTP_RCPT,
    SMTP_DATA,
    SMTP_TEXT,
};

struct smtp {
    uv_loop_t *loop;
    const struct smtp_mail *mail;
    struct tls_context *tls;
    struct stream *stream;
    struct defer *timeout;
    struct strbuf in;
    enum smtp_step step;
    size_t recipients; /* named so far */
    bool is_over;
    char own_name[65];
    smtp_done_fn *done;
    void *data;
};

static void smtp_over(struct smtp *smtp, const struct aq_error *err, bool is_final)
{
    if (smtp->is_over)
        return;
    smtp->is_over = true;
    stream_close(AQ_TAKE(smtp->stream));
    smtp->done(smtp->data, err, is_final);
}

/* ---- what is said ---- */

/* Takes the text, a line without its end; failures come as on_end(). */
static void smtp_say(struct smtp *smtp, enum smtp_step step, struct strbuf *line)
{

    smtp->step = step;
    strbuf_adds(line, "\r\n");
    (void)stream_write(smtp->stream, line->data, line->len);
    explicit_bzero(line->data, line->cap ? line->len : 0);
    strbuf_done(line);
}

static void smtp_say_text(struct smtp *smtp, enum smtp_step step, const char *word,
                          const char *rest)
{
    struct strbuf line = STRBUF_INIT;

    strbuf_addf(&line, "%s%s", word, rest);
    smtp_say(smtp, step, &line);
}

static void smtp_say_base64(struct smtp *smtp, enum smtp_step step, const char *word,
                            const char *bytes, size_t len)
{
    struct strbuf line = STRBUF_INIT;

    strbuf_adds(&line, word);
    strbuf_reserve(&line, BASE64_ENCODE_RAW_LENGTH(len));
    base64_encode_raw(line.data + line.len, len, (const uint8_t *)bytes);
    line.len += BASE64_ENCODE_RAW_LENGTH(len);
    line.data[line.len] = '\0';
    smtp_say(smtp, step, &line);
}

static void smtp_say_plain(struct smtp *smtp)
{
    size_t user = strlen(smtp->mail->username), password = strlen(smtp->mail->password);
    struct strbuf pair = STRBUF_INIT;

    strbuf_add(&pair, "", 1);
    strbuf_add(&pair, smtp->mail->username, user + 1);
    strbuf_add(&pair, smtp->mail->password, password);
    smtp_say_base64(smtp, SMTP_PLAIN, "AUTH PLAIN ", pair.data, pair.len);
    explicit_bzero(pair.data, pair.cap ? pair.len : 0);
    strbuf_done(&pair);
}

static void smtp_say_recipient(struct smtp *smtp)
{
    struct strbuf line = STRBUF_INIT;

    strbuf_addf(&line, "RCPT TO:<%s>", smtp->mail->to[smtp->recipients++]);
    smtp_say(smtp, SMTP_RCPT, &line);
}

static void smtp_say_from(struct smtp *smtp)
{
    struct strbuf line = STRBUF_INIT;

    strbuf_addf(&line, "MAIL FROM:<%s>", smtp->mail->from);
    smtp_say(smtp, SMTP_MAIL, &line);
}

static void smtp_say_mail(struct smtp *smtp)
{
    struct strbuf text = STRBUF_INIT;

    smtp_mail_write(smtp->mail, smtp->own_name, &text);
    strbuf_addc(&text, '.');
    smtp_say(smtp, SMTP_TEXT, &text);
}

/* ---- what is answered ---- */

static int smtp_after_ehlo(struct smtp *smtp, const struct smtp_reply *reply, struct aq_error *err)
{
    const struct smtp_mail *mail = smtp->mail;

    if (mail->use_tls && !stream_is_tls(smtp->stream)) {
        if (!reply->has_starttls)
            return aq_fail(err, ENOTSUP, "the server offers no STARTTLS, and the channel wants it");
        smtp_say_text(smtp, SMTP_STARTTLS, "STARTTLS", "");
    } else if (!mail->username) {
        smtp_say_from(smtp);
    } else if (reply->has_plain) {
        smtp_say_plain(smtp);
    } else if (reply->has_login) {
        smtp_say_text(smtp, SMTP_LOGIN, "AUTH LOGIN", "");
    } else {
        return aq_fail(err, ENOTSUP, "the server offers no login by AUTH PLAIN or AUTH LOGIN");
    }
    return 0;
}

/* The next command; 'err' is filled if there is none. */
static int smtp_answer(struct smtp *smtp, const struct smtp_reply *reply, struct aq_error *err)
{
    const struct smtp_mail *mail = smtp->mail;

    switch (smtp->step) {
    case SMTP_GREETING:
        smtp_say_text(smtp, SMTP_EHLO, "EHLO ", smtp->own_name);
        return 0;
    case SMTP_EHLO:
        return smtp_after_ehlo(smtp, reply, err);
    case SMTP_STARTTLS:
        return stream_start_tls(smtp->stream, smtp->tls, mail->server.host, err);
    case SMTP_LOGIN:
        smtp_say_base64(smtp, SMTP_USERNAME, "", mail->username, strlen(mail->username));
        return 0;
    case SMTP_USERNAME:
        smtp_say_base64(smtp, SMTP_PASSWORD, "", mail->password, strlen(mail->password));
        return 0;
    case SMTP_PLAIN:
    case SMTP_PASSWORD:
        smtp_say_from(smtp);
        return 0;
    case SMTP_MAIL:
        smtp_say_recipient(smtp);
        return 0;
    case SMTP_RCPT:
        if (smtp->recipients < mail->to_count)
            smtp_say_recipient(smtp);
        else
            smtp_say_text(smtp, SMTP_DATA, "DATA", "");
        return 0;
    case SMTP_DATA:
        smtp_say_mail(smtp);
        return 0;
    case SMTP_TEXT: /* goodbyes are not waited for */
        (void)stream_write(smtp->stream, "QUIT\r\n", 6);
        smtp_over(smtp, &(struct aq_error){ 0 }, true);
        return 0;
    }
    return 0;
}

static int smtp_check(const struct smtp *smtp, const struct smtp_reply *reply, struct aq_error *err)
{
    static const struct {
        const char *what;
        unsigned code;
    } steps[] = {
        [SMTP_GREETING] = { "the connection", 220 }, [SMTP_EHLO] = { "EHLO", 250 },
        [SMTP_STARTTLS] = { "STARTTLS", 220 },       [SMTP_PLAIN] = { "the login", 235 },
        [SMTP_LOGIN] = { "the login", 334 },         [SMTP_USERNAME] = { "the login", 334 },
        [SMTP_PASSWORD] = { "the login", 235 },      [SMTP_MAIL] = { "the sender", 250 },
        [SMTP_RCPT] = { "the recipient", 250 },      [SMTP_DATA] = { "DATA", 354 },
        [SMTP_TEXT] = { "the mail", 250 },
    };
    bool is_fine = reply->code == steps[smtp->step].code
                   || (smtp->step == SMTP_RCPT && reply->code == 251);

    if (is_fine)
        return 0;
    return aq_fail(err, EREMOTEIO, "the server answered %s%s%s with %u %s", steps[smtp->step].what,
                   smtp->step == SMTP_RCPT ? " " : "",
                   smtp->step == SMTP_RCPT ? smtp->mail->to[smtp->recipients - 1] : "", reply->code,
                   reply->text);
}

/* A server that says more than was asked could have been spoken for before TLS. */
static void smtp_on_read(void *data, const char *bytes, size_t len)
{
    struct smtp *smtp = data;
    struct smtp_reply reply = { 0 };
    struct aq_error err = { 0 };
    bool is_final = false;
    ssize_t used;

    strbuf_add(&smtp->in, bytes, len);
    used = smtp_reply_read(smtp->in.data, smtp->in.len, &reply, &err);
    if (used == 0)
        return;
    if (used > 0 && (size_t)used < smtp->in.len)
        aq_fail(&err, EPROTO, "the server said more than it was asked");
    strbuf_clear(&smtp->in);
    if (!err.code) {
        is_final = reply.code >= 500;
        if (smtp_check(smtp, &reply, &err) == 0)
            (void)smtp_answer(smtp, &reply, &err);
    }
    if (err.code)
        smtp_over(smtp, &err, is_final || err.code == ENOTSUP);
}

/* ---- the connection ---- */

/* Of TLS after the greetings; what the server offers is asked for again. */
static void smtp_on_open(void *data)
{
    struct smtp *smtp = data;

    if (smtp->step == SMTP_STARTTLS)
        smtp_say_text(smtp, SMTP_EHLO, "EHLO ", smtp->own_name);
}

static void smtp_on_end(void *data, const struct aq_error *err)
{
    struct aq_error why = *err;

    if (!why.code)
        (void)aq_fail(&why, ECONNRESET, "the server closed the connection");
    smtp_over(data, &why, false);
}

static void smtp_on_timeout(void *data)
{
    struct smtp *smtp = data;
    const struct aq_error err = { .code = ETIMEDOUT, .text = "the server did not answer in time" };

    smtp->timeout = NULL;
    smtp_over(smtp, &err, false);
}

static const struct stream_ops smtp_ops = {
    .on_open = smtp_on_open, .on_read = smtp_on_read, .on_end = smtp_on_end, .hears_out = true
};

/* Name of this machine, as it greets. */
static void smtp_find_own_name(struct smtp *smtp)
{
    (void)gethostname(smtp->own_name, sizeof(smtp->own_name) - 1);
    if (!smtp->own_name[0] || smtp->own_name[strspn(smtp->own_name, OWN_NAME_CHARS)])
        memcpy(smtp->own_name, "localhost", sizeof("localhost"));
}

int smtp_send(uv_loop_t *loop, const struct smtp_mail *mail, const struct smtp_options *options,
              smtp_done_fn *done, void *data, struct smtp **ret, struct aq_error *err)
{
    bool is_tls = mail->use_tls && mail->server.port == SMTP_TLS_PORT;
    const struct stream_options dial = { .tls = is_tls ? options->tls : NULL,
                                         .connect_msec = mail->timeout_msec,
                                         .may_reach = options->may_reach,
                                         .reach_data = options->reach_data };
    struct smtp *smtp = aq_alloc(sizeof(*smtp));
    int r;

    *smtp = (struct smtp){ .loop = loop, .mail = mail, .done = done, .data = data };
    strbuf_init(&smtp->in);
    if (mail->use_tls)
        smtp->tls = tls_context_ref(options->tls);
    smtp_find_own_name(smtp);
    smtp->timeout = defer_call(loop, mail->timeout_msec, smtp_on_timeout, smtp);
    r = stream_connect(loop, &mail->server, &dial, &smtp_ops, smtp, &smtp->stream, err);
    if (r < 0) {
        smtp->is_over = true;
        smtp_free(smtp);
        return r;
    }
    *ret = smtp;
    return 0;
}

void smtp_free(struct smtp *smtp)
{
    if (!smtp)
        return;
    stream_close(smtp->stream);
    defer_cancel(smtp->timeout);
    tls_context_free(smtp->tls);
    strbuf_done(&smtp->in);
    free(smtp);
}
