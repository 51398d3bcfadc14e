/* SPDX-License-Identifier: Apache-2.0 */
/* api_server.c - see api_server.h */
#include "k8s/api_server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/strbuf.h"
#include "kube/object.h"

static char *api_server_url(const struct settings *settings)
{
    const char *host = getenv("KUBERNETES_SERVICE_HOST");
    const char *port = getenv("KUBERNETES_SERVICE_PORT");

    if (settings->url)
        return aq_strdup(settings->url);
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

/* What the settings or the environment say, if an object can have that name. */
static const char *api_server_own(const char *set, const char *variable, const char *field,
                                  struct aq_error *err)
{
    const char *name = set ? set : getenv(variable);
    size_t len = name ? strlen(name) : 0;

    if (!name)
        (void)aq_fail_field(err, ENOENT, field, "nothing says it: neither %s nor %s", field,
                            variable);
    else if (len == 0 || len > KUBE_NAME_MAX
             || strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.")
                    != len)
        (void)aq_fail_field(err, EINVAL, field, "'%.100s' is no name of an object", name);
    else
        return name;
    return NULL;
}

const char *api_server_node(const struct settings *settings, struct aq_error *err)
{
    return api_server_own(settings->node, "NODE_NAME", "kubernetes.node", err);
}

const char *api_server_namespace(const struct settings *settings, struct aq_error *err)
{
    return api_server_own(settings->space, "POD_NAMESPACE", "kubernetes.namespace", err);
}
