/* SPDX-License-Identifier: Apache-2.0 */
/* proxies.c - see core/proxies.h */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "http/url.h"
#include "manager/core/nodes/proxies_internal.h"
#include "manager/core/state/state.h"

#define PROXY_URL_MAX 255

struct proxy {
    struct uuid incarnation;
    char url[PROXY_URL_MAX + 1];
};

bool proxies_is_one(const char *id)
{
    return strncmp(id, LINK_PROXY_PREFIX, strlen(LINK_PROXY_PREFIX)) == 0;
}

int proxies_check_id(const char *id, struct aq_error *err)
{
    const char *name = id + strlen(LINK_PROXY_PREFIX);
    int r = agent_id_check(name, err);

    if (r == 0 && strlen(id) > AGENT_ID_MAX)
        r = aq_fail_field(err, EINVAL, "proxy", "a proxy's name has %zu characters at most",
                          AGENT_ID_MAX - strlen(LINK_PROXY_PREFIX));
    return r;
}

int proxies_take_hello(struct core *core, const struct msg_hello *hello, struct aq_error *err)
{
    struct proxy *proxy = map_gets(&core->proxies.connected, hello->agent_id);
    struct url url;
    int r = proxies_check_id(hello->agent_id, err);

    if (r < 0)
        return r;
    if (!hello->addr || strlen(hello->addr) > PROXY_URL_MAX
        || url_parse(hello->addr, &url, err) < 0)
        return aq_fail_field(err, EINVAL, "addr",
                             "a proxy says the URL at which browsers reach it: public-url in "
                             "proxy.toml");
    if (!proxy) {
        proxy = calloc(1, sizeof(*proxy));
        if (!proxy || map_sets(&core->proxies.connected, hello->agent_id, proxy) < 0) {
            free(proxy);
            return aq_fail_oom(err);
        }
    }
    proxy->incarnation = hello->incarnation;
    memcpy(proxy->url, hello->addr, strlen(hello->addr) + 1);
    log_info("'%s' is connected; browsers reach it at %s", hello->agent_id, proxy->url);
    return 0;
}

void proxies_take_message(struct core *core, const char *id, const struct message *msg)
{
    if (msg->type != MSG_APP_REDEEM && msg->type != MSG_APP_CONNECT && msg->type != MSG_APP_CHECK) {
        log_limited(&core->join_log, LOG_LEVEL_WARNING, "'%s' says what only agents may: %s", id,
                    message_type_name(msg->type));
        return;
    }
    if (core->proxies.on_message)
        core->proxies.on_message(core->proxies.data, id, msg);
}

void proxies_lost(struct core *core, const char *id, const struct uuid *incarnation,
                  const char *why)
{
    struct proxy *proxy = map_gets(&core->proxies.connected, id);

    if (!proxy || !uuid_equals(&proxy->incarnation, incarnation))
        return;
    free(map_removes(&core->proxies.connected, id));
    log_info("'%s' is disconnected: %s", id, why);
}

void proxies_forget(struct core *core, const char *id)
{
    free(map_removes(&core->proxies.connected, id));
}

void proxies_free(struct core *core)
{
    for (size_t i = 0; i < core->proxies.connected.count; i++)
        free(core->proxies.connected.entries[i].value);
    map_done(&core->proxies.connected);
}

void core_on_proxy_message(struct core *core, core_proxy_fn *fn, void *data)
{
    core->proxies.on_message = fn;
    core->proxies.data = data;
}

int core_send_proxy(struct core *core, const char *proxy, const struct message *msg,
                    struct aq_error *err)
{
    return core->send(core, proxy, msg, err);
}

int core_open_proxy_stream(struct core *core, const char *proxy, struct msg_stream_open *open,
                           const struct link_stream_ops *ops, void *data, struct link_stream **ret,
                           struct aq_error *err)
{
    if (!core->link || !map_gets(&core->proxies.connected, proxy))
        return aq_fail(err, ENOTCONN, "'%s' is not connected", proxy);
    return link_server_open_stream(core->link, proxy, open, ops, data, ret, err);
}

const char *core_find_proxy_url(const struct core *core)
{
    const struct map *connected = &core->proxies.connected;
    const struct map_entry *first = NULL;

    for (size_t i = 0; i < connected->count; i++)
        if (!first || strcmp(connected->entries[i].key, first->key) < 0)
            first = &connected->entries[i];
    return first ? ((const struct proxy *)first->value)->url : NULL;
}
