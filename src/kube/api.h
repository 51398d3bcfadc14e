/* SPDX-License-Identifier: Apache-2.0 */
/* api.h - requests to the API server of a Kubernetes cluster
 *
 * Belongs to one loop and its thread.
 */
#ifndef AQ_KUBE_API_H
#define AQ_KUBE_API_H

#include <jansson.h>

#include "http/client.h"

#define KUBE_ANSWER_MAX (64u << 20)
#define KUBE_JSON "application/json"
#define KUBE_MERGE_PATCH "application/merge-patch+json"
#define KUBE_JSON_PATCH "application/json-patch+json"

struct kube_api;
struct kube_call;

struct kube_api_conf {
    const char *url;        /* "https://10.96.0.1:443", without a path */
    const char *token_file; /* read for each request: tokens are renewed; NULL = none is sent */
    const char *ca_file;    /* whom to trust; NULL = the system's store */
};

/* Texts are copied. -EINVAL for a URL that is none, errors of tls_context_new(). */
int kube_api_new(uv_loop_t *loop, const struct kube_api_conf *conf, struct kube_api **ret,
                 struct aq_error *err);
/* Calls under way are dropped without their callback; watches are freed before. NULL is fine. */
void kube_api_free(struct kube_api *api);

uv_loop_t *kube_api_loop(const struct kube_api *api);

struct kube_ask {
    enum method method;
    const char *path; /* "/api/v1/namespaces/a/pods/b", maybe with a query; each part encoded */
    const char *body; /* JSON; NULL = none */
    const char *type; /* of the body: one of the above */
};

/* 'answer' is borrowed; NULL if 'err' has a code, of kube_status_read() or of the network, -EPROTO
 * for what is no JSON object.
 */
typedef void kube_done_fn(void *data, const json_t *answer, const struct aq_error *err);

/* on_done() is called once, never from within this call. -errno of reading the token. */
int kube_api_ask(struct kube_api *api, const struct kube_ask *ask, kube_done_fn *on_done,
                 void *data, struct kube_call **ret, struct aq_error *err);
/* on_done() will not be called. NULL is fine. */
void kube_call_cancel(struct kube_call *call);

/* The same for answers that go on: see client_send(). Of ops nothing is added. */
int kube_api_follow(struct kube_api *api, const char *path, const struct exchange_ops *ops,
                    void *data, struct exchange **ret, struct aq_error *err);

#endif
