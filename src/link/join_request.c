/* SPDX-License-Identifier: Apache-2.0 */
/* join_request.c - the agent asks to join a cluster: token and request out, certificate in
 *
 * A manager that does not lead says who does. The token names the authority, of which all managers
 * have certificates, so each proves itself.
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "http/tls.h"
#include "link/channel.h"
#include "link/link.h"

#define CONNECT_USEC (10 * USEC_PER_SEC)

struct join_request {
    uv_loop_t loop;
    uv_timer_t timer; /* until it is given up */
    uv_timer_t again; /* until the next try */
    struct tls_context *tls;
    struct channel *channel;
    char *address;
    bool is_redirected; /* the last manager that answered does not lead */
    const struct msg_join *msg;
    char *cert, *ca;
    struct link_join_keys keys; /* of a manager */
    struct aq_error err;
};

static void join_request_wipe(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

void link_join_keys_done(struct link_join_keys *keys)
{
    join_request_wipe(keys->ca_key);
    join_request_wipe(keys->seal_key);
    join_request_wipe(keys->database);
    *keys = (struct link_join_keys){ .ca_key = NULL };
}

static void join_request_finish(struct join_request *request)
{
    channel_close(AQ_TAKE(request->channel));
    uv_close((uv_handle_t *)&request->timer, NULL);
    uv_close((uv_handle_t *)&request->again, NULL);
}

static void join_request_connect(uv_timer_t *timer);

/* The leader that it names, else the same manager a little later, when there is one. */
static void join_request_follow(struct join_request *request, const struct msg_refused *refused)
{
    channel_close(AQ_TAKE(request->channel));
    request->is_redirected = true;
    if (refused->leader) {
        free(request->address);
        request->address = aq_strdup(refused->leader);
    }
    (void)uv_timer_start(&request->again, join_request_connect,
                         (uint64_t)(refused->retry_usec / USEC_PER_MSEC), 0);
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

/* A manager asks without a request for a certificate, and gets keys. */
static int join_request_take(struct join_request *request, const struct msg_joined *joined)
{
    bool is_manager = !request->msg->csr;

    if (is_manager ? !joined->ca_key || !joined->seal_key : !joined->cert)
        return aq_fail(&request->err, EPROTO, "the manager's answer has no %s: upgrade it",
                       is_manager ? "keys for another manager" : "certificate");
    request->cert = aq_strdup(joined->cert);
    request->ca = aq_strdup(joined->ca);
    request->keys = (struct link_join_keys){ .ca_key = aq_strdup(joined->ca_key),
                                             .seal_key = aq_strdup(joined->seal_key),
                                             .database = aq_strdup(joined->database) };
    return 0;
}

static void join_request_on_message(void *data, uint64_t seq, const struct message *msg)
{
    struct join_request *request = data;

    (void)seq;
    if (msg->type == MSG_JOINED) {
        if (join_request_take(request, &msg->joined) == 0 && msg->joined.note)
            log_warning("%s", msg->joined.note);
    } else if (msg->type == MSG_REFUSED && msg->refused.kind && msg->refused.retry_usec
               && strcmp(msg->refused.kind, LINK_NOT_LEADER) == 0) {
        join_request_follow(request, &msg->refused);
        return;
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

    (void)aq_fail(&request->err, ETIMEDOUT, "the manager at %s %s", request->address,
                  request->is_redirected ? "does not lead, and no manager that leads has answered"
                                         : "did not answer in time");
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

static void join_request_connect(uv_timer_t *timer)
{
    static const struct channel_ops ops = {
        .on_open = join_request_on_open,
        .on_message = join_request_on_message,
        .on_end = join_request_on_end,
    };
    struct join_request *request = timer->data;
    const struct channel_target target = { .address = request->address,
                                           .tls = request->tls,
                                           .connect_usec = CONNECT_USEC };

    if (channel_connect(&request->loop, &target, &ops, request, &request->channel, &request->err)
        < 0)
        join_request_finish(request);
}

static int join_request_run(struct join_request *request, int64_t timeout_usec,
                            struct aq_error *err)
{
    int r = uv_loop_init(&request->loop);

    if (r < 0)
        return aq_fail(err, -r, "cannot make an event loop: %s", uv_strerror(r));
    (void)uv_timer_init(&request->loop, &request->timer);
    (void)uv_timer_init(&request->loop, &request->again);
    request->timer.data = request->again.data = request;
    (void)uv_timer_start(&request->timer, join_request_on_timer,
                         (uint64_t)(timeout_usec / USEC_PER_MSEC), 0);
    (void)uv_timer_start(&request->again, join_request_connect, 0, 0);
    (void)uv_run(&request->loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&request->loop);
    if (request->err.code && err)
        *err = request->err;
    return -request->err.code;
}

int link_join_request(const char *address, const struct pki_token *token,
                      const struct msg_join *msg, int64_t timeout_usec, char **ret_cert,
                      char **ret_ca, char **ret_address, struct link_join_keys *ret_keys,
                      struct aq_error *err)
{
    AQ_CLEANUP(tls_context_freep) struct tls_context *tls = join_request_make_tls(token, err);
    struct join_request request = { .msg = msg, .tls = tls, .address = aq_strdup(address) };
    int r = tls ? join_request_run(&request, timeout_usec, err) : err ? -err->code : -EINVAL;

    if (r < 0) {
        free(request.cert);
        free(request.ca);
        free(request.address);
        link_join_keys_done(&request.keys);
        return r;
    }
    *ret_cert = request.cert;
    *ret_ca = request.ca;
    *ret_address = request.address;
    if (ret_keys)
        *ret_keys = request.keys;
    else
        link_join_keys_done(&request.keys);
    return 0;
}
