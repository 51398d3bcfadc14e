/* SPDX-License-Identifier: Apache-2.0 */
/* join_request.c - the agent asks to join a cluster: token and request out, certificate in */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "http/tls.h"
#include "link/channel.h"
#include "link/link.h"

struct join_request {
    uv_loop_t loop;
    uv_timer_t timer;
    struct channel *channel;
    const struct msg_join *msg;
    char *cert, *ca;
    struct aq_error err;
};

static void join_request_finish(struct join_request *request)
{
    channel_close(AQ_TAKE(request->channel));
    uv_close((uv_handle_t *)&request->timer, NULL);
}

static void join_request_on_open(void *data)
{
    struct join_request *request = data;
    struct message msg = { .type = MSG_JOIN, .join = *request->msg };

    msg.join.protocol_min = LINK_PROTOCOL_MIN;
    msg.join.protocol_max = LINK_PROTOCOL_MAX;
    if (channel_send(request->channel, &msg, &request->err) < 0)
        join_request_finish(request);
}

static void join_request_on_message(void *data, uint64_t seq, const struct message *msg)
{
    struct join_request *request = data;

    (void)seq;
    if (msg->type == MSG_JOINED) {
        if (msg->joined.note)
            log_warning("%s", msg->joined.note);
        request->cert = aq_strdup(msg->joined.cert);
        request->ca = aq_strdup(msg->joined.ca);
    } else {
        (void)aq_fail_kind(&request->err, EACCES, "refused", "the manager refused: %s",
                           msg->type == MSG_REFUSED && msg->refused.text ? msg->refused.text
                                                                         : "no reason given");
    }
    join_request_finish(request);
}

static void join_request_on_end(void *data, const char *why)
{
    struct join_request *request = data;

    (void)aq_fail(&request->err, ECONNABORTED, "%s", why);
    join_request_finish(request);
}

static void join_request_on_timer(uv_timer_t *timer)
{
    struct join_request *request = timer->data;

    (void)aq_fail(&request->err, ETIMEDOUT, "the manager did not answer in time");
    join_request_finish(request);
}

static struct tls_context *join_request_make_tls(const struct pki_token *token,
                                                 struct aq_error *err)
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

static int join_request_ask(struct join_request *request, const char *host, uint16_t port,
                            struct tls_context *tls, int64_t timeout_usec, struct aq_error *err)
{
    static const struct channel_ops ops = {
        .on_open = join_request_on_open,
        .on_message = join_request_on_message,
        .on_end = join_request_on_end,
    };
    int r;

    (void)uv_timer_init(&request->loop, &request->timer);
    request->timer.data = request;
    (void)uv_timer_start(&request->timer, join_request_on_timer,
                         (uint64_t)(timeout_usec / USEC_PER_MSEC), 0);
    r = channel_connect(&request->loop, host, port, tls, &ops, request, &request->channel, err);
    if (r < 0)
        uv_close((uv_handle_t *)&request->timer, NULL);
    (void)uv_run(&request->loop, UV_RUN_DEFAULT);
    return r;
}

int link_join_request(const char *host, uint16_t port, const struct pki_token *token,
                      const struct msg_join *msg, int64_t timeout_usec, char **ret_cert,
                      char **ret_ca, struct aq_error *err)
{
    AQ_CLEANUP(tls_context_freep) struct tls_context *tls = join_request_make_tls(token, err);
    struct join_request request = { .msg = msg };
    int r;

    if (!tls)
        return err ? -err->code : -EINVAL;
    if (uv_loop_init(&request.loop) < 0)
        return aq_fail_oom(err);
    r = join_request_ask(&request, host, port, tls, timeout_usec, err);
    (void)uv_loop_close(&request.loop);
    if (r == 0 && request.err.code) {
        r = -request.err.code;
        if (err)
            *err = request.err;
    }
    if (r < 0) {
        free(request.cert);
        free(request.ca);
        return r;
    }
    *ret_cert = request.cert;
    *ret_ca = request.ca;
    return 0;
}
