/* SPDX-License-Identifier: Apache-2.0 */
/* api_server.c - see api_server.h */
#include "k8s/api_server.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "kube/object.h"

static char *api_server_url(const struct settings *settings)
{
    const char *host = getenv("KUBERNETES_SERVICE_HOST");
    const char *port = getenv("KUBERNETES_SERVICE_PORT");

    if (settings->url)
        return strdup(settings->url);
    if (!host || !port)
        return NULL;
    return aq_format(strchr(host, ':') ? "https://[%s]:%s" : "https://%s:%s", host, port);
}

int api_server_new(uv_loop_t *loop, const struct settings *settings, struct kube_api **ret,
                   struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *url = api_server_url(settings);
    const struct kube_api_conf conf = {
        .url = url,
        .token_file = settings->token[0] ? settings->token : NULL,
        .ca_file = settings->ca[0] ? settings->ca : NULL,
    };

    if (!url)
        return aq_fail_field(err, ENOENT, "kubernetes.url",
                             "nothing says where the API server is: not kubernetes.url, and not "
                             "KUBERNETES_SERVICE_HOST, which pods have");
    return kube_api_new(loop, &conf, ret, err);
}

const char *api_server_node(const struct settings *settings, struct aq_error *err)
{
    const char *node = settings->node ? settings->node : getenv("NODE_NAME");

    if (!node) {
        (void)aq_fail_field(
            err, ENOENT, "kubernetes.node",
            "nothing says which node this is: neither kubernetes.node nor NODE_NAME");
        return NULL;
    }
    for (const char *c = node; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '-' && *c != '.') {
            (void)aq_fail_field(err, EINVAL, "kubernetes.node", "'%.100s' is no name of a node",
                                node);
            return NULL;
        }
    if (!node[0] || strlen(node) > KUBE_NAME_MAX) {
        (void)aq_fail_field(err, EINVAL, "kubernetes.node", "a node's name has 1 to %d characters",
                            KUBE_NAME_MAX);
        return NULL;
    }
    return node;
}
