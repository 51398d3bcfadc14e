#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "http/tls.h"
#include "link/channel.h"
#include "link/link.h"

struct asking {
    uv_loop_t loop;
    uv_timer_t timer;
    struct channel *channel;
    const struct msg_join *msg;
    char *cert, *ca;
    struct aq_error err;
};

static void finish(struct asking *asking)
{
    channel_close(AQ_TAKE(asking->channel));
    uv_close((uv_handle_t *)&asking->timer, NULL);
}

static void on_open(void *data)
{
    struct asking *asking = data;
    struct message msg = { .type = MSG_JOIN, .join = *asking->msg };

    msg.join.protocol_min = LINK_PROTOCOL_MIN;
    msg.join.protocol_max = LINK_PROTOCOL_MAX;
    if (channel_send(asking->channel, &msg, &asking->err) < 0)
        finish(asking);
}

static void on_message(void *data, uint64_t seq, const struct message *msg)
{
    struct asking *asking = data;

    (void)seq;
    if (msg->type == MSG_JOINED) {
        asking->cert = strdup(msg->joined.cert);
        asking->ca = strdup(msg->joined.ca);
        if (!asking->cert || !asking->ca)
            (void)aq_fail(&asking->err, ENOMEM, "join");
    } else {
        (void)aq_fail_kind(&asking->err, EACCES, "refused", "the manager refused: %s",
                           msg->type == MSG_REFUSED && msg->refused.text ? msg->refused.text
                                                                         : "no reason given");
    }
    finish(asking);
}

static void on_end(void *data, const char *why)
{
    struct asking *asking = data;

    (void)aq_fail(&asking->err, ECONNABORTED, "%s", why);
    finish(asking);
}

static void on_timer(uv_timer_t *timer)
{
    struct asking *asking = timer->data;

    (void)aq_fail(&asking->err, ETIMEDOUT, "the manager did not answer in time");
    finish(asking);
}

static struct tls_context *make_tls(const struct pki_token *token, struct aq_error *err)
{
    char fingerprint[TLS_FINGERPRINT_MAX];
    const struct tls_options options = {
        .ca_fingerprint = fingerprint,
        .tls13_only = true,
        .any_name = true,
    };
    struct tls_context *tls = NULL;

    for (size_t i = 0; i < PKI_FINGERPRINT_BYTES; i++)
        (void)snprintf(fingerprint + 2 * i, 3, "%02x", token->ca_fingerprint[i]);
    return tls_context_new(&options, &tls, err) < 0 ? NULL : tls;
}

static int ask(struct asking *asking, const char *host, uint16_t port, struct tls_context *tls,
               int64_t timeout_usec, struct aq_error *err)
{
    static const struct channel_ops ops = {
        .on_open = on_open,
        .on_message = on_message,
        .on_end = on_end,
    };
    int r;

    (void)uv_timer_init(&asking->loop, &asking->timer);
    asking->timer.data = asking;
    (void)uv_timer_start(&asking->timer, on_timer, (uint64_t)(timeout_usec / USEC_PER_MSEC), 0);
    r = channel_connect(&asking->loop, host, port, tls, &ops, asking, &asking->channel, err);
    if (r < 0)
        uv_close((uv_handle_t *)&asking->timer, NULL);
    (void)uv_run(&asking->loop, UV_RUN_DEFAULT);
    return r;
}

int link_join_request(const char *host, uint16_t port, const struct pki_token *token,
                      const struct msg_join *msg, int64_t timeout_usec, char **ret_cert,
                      char **ret_ca, struct aq_error *err)
{
    AQ_CLEANUP(tls_context_freep) struct tls_context *tls = make_tls(token, err);
    struct asking asking = { .msg = msg };
    int r;

    if (!tls)
        return err ? -err->code : -EINVAL;
    if (uv_loop_init(&asking.loop) < 0)
        return aq_fail(err, ENOMEM, "join");
    r = ask(&asking, host, port, tls, timeout_usec, err);
    (void)uv_loop_close(&asking.loop);
    if (r == 0 && asking.err.code) {
        r = -asking.err.code;
        if (err)
            *err = asking.err;
    }
    if (r < 0) {
        free(asking.cert);
        free(asking.ca);
        return r;
    }
    *ret_cert = asking.cert;
    *ret_ca = asking.ca;
    return 0;
}
