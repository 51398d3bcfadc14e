/* SPDX-License-Identifier: Apache-2.0 */
/* role.c - the webhook alone, as a role */
#include <stdlib.h>

#include "k8s/api_server.h"
#include "k8s/role.h"
#include "k8s/webhook/webhook.h"

struct webhook_daemon {
    struct kube_api *api;
    struct webhook *webhook;
};

static void webhook_role_end(void *data)
{
    struct webhook_daemon *daemon = data;

    webhook_free(daemon->webhook);
    kube_api_free(daemon->api);
    free(daemon);
}

static int webhook_role_begin(uv_loop_t *loop, const struct settings *settings, void **ret,
                              struct aq_error *err)
{
    struct webhook_daemon *daemon = calloc(1, sizeof(*daemon));
    int r;

    if (!daemon)
        return aq_fail_oom(err);
    r = api_server_new(loop, settings, &daemon->api, err);
    if (r == 0)
        r = webhook_new(loop, settings, daemon->api, &daemon->webhook, err);
    if (r < 0)
        webhook_role_end(daemon);
    else
        *ret = daemon;
    return r;
}

const struct role scheduler_role = {
    .name = "scheduler",
    .usage = "beside kube-scheduler: reviews pods that ask for parts of GPUs",
    .begin = webhook_role_begin,
    .end = webhook_role_end,
};
