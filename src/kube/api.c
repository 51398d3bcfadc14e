/* SPDX-License-Identifier: Apache-2.0 */
/* api.c - see api.h */
#include "kube/api.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/json_load.h"
#include "base/list.h"
#include "base/memory.h"
#include "kube/object.h"

#define TOKEN_MAX 16384
#define ANSWER_MSEC 30000

struct kube_api {
    uv_loop_t *loop;
    struct client *client;
    char *url, *token_file;
    struct list calls;
};

struct kube_call {
    struct list link;
    struct exchange *exchange;
    kube_done_fn *on_done;
    void *data;
};

int kube_api_new(uv_loop_t *loop, const struct kube_api_conf *conf, struct kube_api **ret,
                 struct aq_error *err)
{
    AQ_CLEANUP(tls_context_freep) struct tls_context *tls = NULL;
    const struct tls_options trust = { .ca_file = conf->ca_file };
    struct client_options options = { .answer_msec = ANSWER_MSEC };
    size_t len = strlen(conf->url);
    struct kube_api *api;
    struct url url;
    int r = url_parse(conf->url, &url, err);

    if (r == 0 && strcmp(url.target, "/") != 0)
        r = aq_fail(err, EINVAL, "'%.100s' is not the URL of an API server: it has a path",
                    conf->url);
    if (r == 0 && url.tls)
        r = tls_context_new(&trust, &tls, err);
    if (r < 0)
        return r;
    api = aq_alloc(sizeof(*api));
    *api = (struct kube_api){ .loop = loop,
                              .url = aq_strndup(conf->url, len - (conf->url[len - 1] == '/')),
                              .token_file = aq_strdup(conf->token_file) };
    list_init(&api->calls);
    options.tls = tls;
    api->client = client_new(loop, &options);
    *ret = api;
    return 0;
}

uv_loop_t *kube_api_loop(const struct kube_api *api)
{
    return api->loop;
}

void kube_call_cancel(struct kube_call *call)
{
    if (!call)
        return;
    exchange_cancel(call->exchange);
    list_remove(&call->link);
    free(call);
}

void kube_api_free(struct kube_api *api)
{
    if (!api)
        return;
    LIST_FOREACH(link, &api->calls)
        kube_call_cancel(LIST_ENTRY(link, struct kube_call, link));
    if (api->client)
        client_free(api->client);
    free(api->url);
    free(api->token_file);
    free(api);
}

/* "Authorization: Bearer TOKEN", and what else there is to say. */
static int api_write_headers(const struct kube_api *api, const char *type, struct strbuf *out,
                             struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf token = STRBUF_INIT;
    int r = api->token_file ? fs_read(AT_FDCWD, api->token_file, TOKEN_MAX, &token, err) : 0;
    size_t len = r < 0 ? 0 : strcspn(token.data, "\r\n");

    if (r < 0)
        return r;
    for (size_t i = 0; i < len; i++)
        if (token.data[i] <= ' ' || token.data[i] > '~')
            return aq_fail(err, EINVAL, "'%s' has no token", api->token_file);
    if (len)
        strbuf_addf(out, "Authorization: Bearer %.*s\r\n", (int)len, token.data);
    strbuf_addf(out, "Accept: " KUBE_JSON "\r\n");
    if (type)
        strbuf_addf(out, "Content-Type: %s\r\n", type);
    return 0;
}

static void api_on_answer(void *data, const struct client_response *response,
                          const struct aq_error *err)
{
    struct kube_call *call = data;
    kube_done_fn *on_done = call->on_done;
    void *of = call->data;
    struct aq_error failed = *err;
    json_t *answer = NULL;

    list_remove(&call->link);
    free(call);
    if (response && (response->head->status < 200 || response->head->status > 299)) {
        (void)kube_status_read(response->head->status, response->body, response->body_len, &failed);
    } else if (response) {
        answer = json_load_text(response->body, response->body_len, 0, NULL);
        if (!json_is_object(answer))
            (void)aq_fail(&failed, EPROTO, "the API server's answer is no JSON object");
    }
    on_done(of, failed.code ? NULL : answer, &failed);
    json_decref(answer);
}

int kube_api_ask(struct kube_api *api, const struct kube_ask *ask, kube_done_fn *on_done,
                 void *data, struct kube_call **ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf headers = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *url = aq_format("%s%s", api->url, ask->path);
    struct kube_call *call = aq_alloc(sizeof(*call));
    int r = api_write_headers(api, ask->type, &headers, err);
    const struct client_request request = { .method = ask->method,
                                            .url = url,
                                            .headers = headers.data,
                                            .body = ask->body,
                                            .body_len = ask->body ? strlen(ask->body) : 0,
                                            .body_max = KUBE_ANSWER_MAX };

    if (r == 0) {
        *call = (struct kube_call){ .on_done = on_done, .data = data };
        r = client_fetch(api->client, &request, api_on_answer, call, &call->exchange, err);
    }
    if (r < 0) {
        free(call);
        return r;
    }
    list_add(&api->calls, &call->link);
    *ret = call;
    return 0;
}

int kube_api_follow(struct kube_api *api, const char *path, const struct exchange_ops *ops,
                    void *data, struct exchange **ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf headers = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *url = aq_format("%s%s", api->url, path);
    int r = api_write_headers(api, NULL, &headers, err);
    const struct client_request request = {
        .method = METHOD_GET, .url = url, .headers = headers.data, .body_max = UINT64_MAX
    };

    return r < 0 ? r : client_send(api->client, &request, ops, data, ret, err);
}
