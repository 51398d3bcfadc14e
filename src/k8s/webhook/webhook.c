/* SPDX-License-Identifier: Apache-2.0 */
/* webhook.c - see webhook.h */
#include "k8s/webhook/webhook.h"

#include "base/log.h"
#include "base/memory.h"
#include "http/server.h"
#include "http/tls.h"
#include "k8s/api_server.h"
#include "k8s/webhook/certificate_keeper.h"
#include "k8s/webhook/review.h"

#define REVIEW_MAX (3u << 20) /* what an API server takes at most */
#define CONNECTIONS_MAX 256

struct webhook {
    const struct settings *settings;
    struct certificate_keeper *keeper;
    struct router *router;
    struct server *server;
    struct tls_context *tls; /* NULL = there is no certificate yet */
};

static void webhook_on_mutate(struct request *req, void *data)
{
    const struct webhook *webhook = data;
    AQ_CLEANUP(aq_freep) char *answer = NULL;
    struct aq_error err = { 0 };
    size_t len;
    const char *body = request_get_body(req, &len);

    if (review_answer(webhook->settings, body, len, &answer, &err) < 0)
        request_fail(req, &err);
    else
        request_reply(req, 200, "application/json", answer, strlen(answer));
}

static void webhook_on_health(struct request *req, void *data)
{
    (void)data;
    request_reply(req, 200, "text/plain", "ok\n", 3);
}

static const struct route webhook_routes[] = {
    { .method = METHOD_POST,
      .path = "/mutate",
      .handler = webhook_on_mutate,
      .doc = "Review a pod that is about to be made",
      .body_max = REVIEW_MAX },
    { .method = METHOD_GET,
      .path = "/health",
      .handler = webhook_on_health,
      .doc = "It has a certificate, and answers" },
};

static int webhook_on_certificate(void *data, const struct certificate *certificate,
                                  struct aq_error *err)
{
    struct webhook *webhook = data;
    AQ_CLEANUP(tls_context_freep) struct tls_context *tls = NULL;
    const struct tls_options options = { .is_server = true,
                                         .cert_pem = certificate->cert,
                                         .key_pem = certificate->key };
    struct listener_options listen = { .address = webhook->settings->webhook.listen };
    struct listener *listener;
    int r;

    if (webhook->tls)
        return tls_context_set_certificate(webhook->tls, certificate->cert, certificate->key, err);
    r = tls_context_new(&options, &tls, err);
    listen.tls = tls;
    if (r == 0)
        r = server_listen(webhook->server, &listen, &listener, err);
    if (r < 0)
        return r;
    log_info("the webhook listens on port %u", (unsigned)listener_get_port(listener));
    webhook->tls = AQ_TAKE(tls);
    return 0;
}

/* ---- life ---- */

static void webhook_release(void *data)
{
    struct webhook *webhook = data;

    server_free(webhook->server);
    router_free(webhook->router);
    tls_context_free(webhook->tls);
    free(webhook);
}

void webhook_free(struct webhook *webhook)
{
    if (!webhook)
        return;
    certificate_keeper_free(webhook->keeper);
    if (webhook->server)
        server_stop(webhook->server, 0, webhook_release, webhook);
    else
        webhook_release(webhook);
}
AQ_DEFINE_CLEANUP(struct webhook, webhook_free)

int webhook_new(uv_loop_t *loop, const struct settings *settings, struct kube_api *api,
                struct webhook **ret, struct aq_error *err)
{
    AQ_CLEANUP(webhook_freep) struct webhook *webhook = NULL;
    struct server_options options = { .limits = { .connections_max = CONNECTIONS_MAX } };
    const char *space;
    int r;

    *ret = NULL;
    if (strcmp(settings->webhook.listen, "off") == 0)
        return 0;
    space = api_server_namespace(settings, err);
    if (!space)
        return -err->code;
    webhook = aq_alloc(sizeof(*webhook));
    webhook->settings = settings;
    webhook->router = router_new();
    r = router_add(webhook->router, webhook_routes, AQ_COUNT(webhook_routes), webhook, err);
    options.app.router = webhook->router;
    if (r < 0)
        return r;
    webhook->server = server_new(loop, &options);
    webhook->keeper = certificate_keeper_new(settings, api, space, webhook_on_certificate, webhook);
    *ret = AQ_TAKE(webhook);
    return 0;
}
