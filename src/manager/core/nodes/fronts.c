/* SPDX-License-Identifier: Apache-2.0 */
/* fronts.c - see core/fronts.h */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "http/url.h"
#include "manager/core/nodes/fronts_internal.h"
#include "manager/core/nodes/managers_internal.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/state.h"

#define FRONT_URL_MAX 255

struct front {
    struct uuid incarnation;
    int64_t heard_usec; /* wall clock, before it was lost */
    char url[FRONT_URL_MAX + 1];
    char domain_url[FRONT_URL_MAX + 1]; /* "" = it has none */
};

static const struct front_type {
    const char *prefix, *name; /* of its ids; as settings and options call it */
    enum message_type says[6]; /* no more than these */
    size_t says_count;
    const char *token_command; /* that makes a token for its name */
} front_types[FRONT_KINDS] = {
    [FRONT_PROXY] = { LINK_PROXY_PREFIX,
                      "proxy",
                      { MSG_APP_REDEEM, MSG_APP_CONNECT, MSG_APP_CHECK, MSG_APP_USE,
                        MSG_SERVING_DONE, MSG_SERVING_USE },
                      6,
                      "aliquot agent token --proxy" },
    [FRONT_STORAGE] = { LINK_STORAGE_PREFIX,
                        "storage",
                        { MSG_STORAGE_HELLO, MSG_STORAGE_ANSWER, MSG_STORAGE_PROGRESS,
                          MSG_STORAGE_CHECK, MSG_STORAGE_SIZE },
                        5,
                        "aliquot agent token --storage" },
    [FRONT_WEB] = { LINK_WEB_PREFIX, "web", { MSG_WEB_ASK }, 1, "aliquot agent token --web" },
    [FRONT_MANAGER] = { LINK_MANAGER_PREFIX,
                        "manager",
                        { MSG_UNKNOWN },
                        0,
                        "aliquot admin manager token --name" },
};

/* FRONT_KINDS = it is none. */
static enum front_kind front_kind_of(const char *id)
{
    enum front_kind kind = 0;

    while (kind < FRONT_KINDS
           && strncmp(id, front_types[kind].prefix, strlen(front_types[kind].prefix)) != 0)
        kind++;
    return kind;
}

bool core_is_front(const char *id)
{
    return front_kind_of(id) != FRONT_KINDS;
}

const char *core_front_name(enum front_kind kind, const char *id)
{
    return id + strlen(front_types[kind].prefix);
}

int fronts_check_id(const char *id, struct aq_error *err)
{
    enum front_kind kind = front_kind_of(id);
    const char *name = core_front_name(kind, id);
    int r = agent_id_check(name, err);

    if (r == 0 && strlen(id) > AGENT_ID_MAX)
        r = aq_fail_field(err, EINVAL, front_types[kind].name,
                          "the name of a %s has %zu characters at most", front_types[kind].name,
                          AGENT_ID_MAX - strlen(front_types[kind].prefix));
    return r;
}

int fronts_fail_token(const char *id, struct aq_error *err)
{
    enum front_kind kind = front_kind_of(id);

    return aq_fail(err, EACCES, "a %s joins with a token that was made for it: '%s %s'",
                   front_types[kind].name, front_types[kind].token_command,
                   core_front_name(kind, id));
}

static void front_tell_lost(const struct core *core, const char *id)
{
    enum front_kind kind = front_kind_of(id);
    const struct core_front_ops *ops = core->fronts.ops[kind];
    const struct core_front_ops *serving = core->fronts.serving_ops;

    if (ops && ops->on_lost)
        ops->on_lost(core->fronts.data[kind], id);
    if (kind == FRONT_PROXY && serving && serving->on_lost)
        serving->on_lost(core->fronts.serving_data, id);
}

static void front_tell_connected(const struct core *core, const char *id)
{
    enum front_kind kind = front_kind_of(id);
    const struct core_front_ops *ops = core->fronts.ops[kind];
    const struct core_front_ops *serving = core->fronts.serving_ops;

    if (ops && ops->on_connected)
        ops->on_connected(core->fronts.data[kind], id);
    if (kind == FRONT_PROXY && serving && serving->on_connected)
        serving->on_connected(core->fronts.serving_data, id);
}

int fronts_take_hello(struct core *core, const struct msg_hello *hello, struct aq_error *err)
{
    struct front *front = map_gets(&core->fronts.connected, hello->agent_id);
    struct url url;
    bool is_manager = front_kind_of(hello->agent_id) == FRONT_MANAGER;
    int r = fronts_check_id(hello->agent_id, err);

    if (r == 0 && is_manager)
        r = managers_check(core, core_front_name(FRONT_MANAGER, hello->agent_id), err);
    if (r < 0)
        return r;
    if (!hello->addr || strlen(hello->addr) > FRONT_URL_MAX
        || url_parse(hello->addr, &url, err) < 0)
        return aq_fail_field(err, EINVAL, "addr",
                             "a %s says the URL at which clients reach it: %s in its settings",
                             front_types[front_kind_of(hello->agent_id)].name,
                             is_manager ? "advertise" : "public-url");
    if (hello->domain_url
        && (strlen(hello->domain_url) > FRONT_URL_MAX
            || url_parse(hello->domain_url, &url, err) < 0))
        return aq_fail_field(err, EINVAL, "domain_url",
                             "'%.100s' is not the URL of the domain of a %s", hello->domain_url,
                             front_types[front_kind_of(hello->agent_id)].name);
    if (front) {
        front_tell_lost(core, hello->agent_id);
    } else {
        front = aq_alloc(sizeof(*front));
        map_sets(&core->fronts.connected, hello->agent_id, front);
    }
    free(map_removes(&core->fronts.gone, hello->agent_id));
    front->incarnation = hello->incarnation;
    memcpy(front->url, hello->addr, strlen(hello->addr) + 1);
    (void)snprintf(front->domain_url, sizeof(front->domain_url), "%s",
                   hello->domain_url ? hello->domain_url : "");
    if (is_manager)
        managers_note_hello(core, core_front_name(FRONT_MANAGER, hello->agent_id), hello);
    log_info("'%s' is connected; clients reach it at %s", hello->agent_id, front->url);
    front_tell_connected(core, hello->agent_id);
    return 0;
}

void fronts_take_message(struct core *core, const char *id, const struct message *msg)
{
    enum front_kind kind = front_kind_of(id);
    const struct core_front_ops *ops = core->fronts.ops[kind];
    size_t i = 0;

    while (i < front_types[kind].says_count && front_types[kind].says[i] != msg->type)
        i++;
    if (i == front_types[kind].says_count) {
        log_limited(&core->join_log, LOG_LEVEL_WARNING, "'%s' says what only others may: %s", id,
                    message_type_name(msg->type));
        return;
    }
    if (msg->type == MSG_SERVING_DONE || msg->type == MSG_SERVING_USE) {
        if (core->fronts.serving_ops)
            core->fronts.serving_ops->on_message(core->fronts.serving_data, id, msg);
    } else if (ops) {
        ops->on_message(core->fronts.data[kind], id, msg);
    }
}

/* By the wall clock. */
static int64_t front_heard_usec(const struct core *core, const char *id)
{
    int64_t heard = core->link ? link_server_heard_usec(core->link, id) : 0;

    return heard ? clock_realtime_usec() - (clock_monotonic_usec() - heard) : 0;
}

/* Kept until it connects again, so that it is listed as not connected. */
static void front_keep(struct core *core, const char *id, struct front *front)
{
    front->heard_usec = front_heard_usec(core, id);
    (void)map_sets(&core->fronts.gone, id, front);
}

void fronts_lost(struct core *core, const char *id, const struct uuid *incarnation, const char *why)
{
    const struct front *front = map_gets(&core->fronts.connected, id);

    if (!front || !uuid_equals(&front->incarnation, incarnation))
        return;
    log_info("'%s' is disconnected: %s", id, why);
    front_keep(core, id, map_removes(&core->fronts.connected, id));
    front_tell_lost(core, id);
}

void fronts_forget(struct core *core, const char *id)
{
    struct front *front = map_removes(&core->fronts.connected, id);

    if (front)
        front_tell_lost(core, id);
    free(front);
    free(map_removes(&core->fronts.gone, id));
}

bool fronts_find(const struct core *core, const char *id, int64_t *ret_heard_usec)
{
    const struct front *gone = map_gets(&core->fronts.gone, id);
    bool is_connected = map_gets(&core->fronts.connected, id);

    *ret_heard_usec = is_connected ? front_heard_usec(core, id) : gone ? gone->heard_usec : 0;
    return is_connected;
}

static void front_free_all(struct map *fronts)
{
    for (size_t i = 0; i < fronts->count; i++)
        free(fronts->entries[i].value);
    map_done(fronts);
}

void fronts_free(struct core *core)
{
    front_free_all(&core->fronts.connected);
    front_free_all(&core->fronts.gone);
}

/* ---- tickets ---- */

const char *core_agent_data_address(const struct core *core, const char *agent_id)
{
    const struct agent_entry *a = agent_entry_find(core, agent_id);

    return a && a->is_connected && core->ca ? a->data_address : NULL;
}

int core_write_ticket(const struct core *core, const struct ticket *ticket, struct strbuf *out,
                      struct aq_error *err)
{
    return ticket_write(core->ca, ticket, out, err);
}

int core_read_ticket(struct core *core, const char *text, int64_t now_usec, struct ticket *ret,
                     struct aq_error *err)
{
    struct ticket_key *key;
    int r = ticket_key_new(pki_ca_cert(core->ca), &key, err);

    if (r < 0)
        return r;
    r = ticket_read(key, text, strlen(text), now_usec, ret, err);
    ticket_key_free(key);
    return r;
}

/* ---- contacts ---- */

const char *core_front_kind_name(enum front_kind kind)
{
    return front_types[kind].name;
}

static void front_write(const struct map *fronts, size_t i, bool is_connected, int64_t heard_usec,
                        void (*fn)(void *data, const struct core_front_contact *contact),
                        void *data)
{
    const char *id = fronts->entries[i].key;
    const struct front *front = fronts->entries[i].value;
    enum front_kind kind = front_kind_of(id);
    const struct core_front_contact contact = {
        .kind = kind,
        .name = core_front_name(kind, id),
        .url = front->url,
        .domain_url = front->domain_url[0] ? front->domain_url : NULL,
        .is_connected = is_connected,
        .heard_usec = heard_usec,
    };

    fn(data, &contact);
}

void core_each_front(const struct core *core,
                     void (*fn)(void *data, const struct core_front_contact *contact), void *data)
{
    const struct map *connected = &core->fronts.connected, *gone = &core->fronts.gone;

    for (size_t i = 0; i < connected->count; i++)
        front_write(connected, i, true, front_heard_usec(core, connected->entries[i].key), fn,
                    data);
    for (size_t i = 0; i < gone->count; i++)
        front_write(gone, i, false, ((const struct front *)gone->entries[i].value)->heard_usec, fn,
                    data);
}

void core_set_front_ops(struct core *core, enum front_kind kind, const struct core_front_ops *ops,
                        void *data)
{
    core->fronts.ops[kind] = ops;
    core->fronts.data[kind] = data;
}

void core_set_serving_ops(struct core *core, const struct core_front_ops *ops, void *data)
{
    core->fronts.serving_ops = ops;
    core->fronts.serving_data = data;
}

int core_send_front(struct core *core, const char *id, const struct message *msg,
                    struct aq_error *err)
{
    return core->send(core, id, msg, err);
}

void core_send_fronts(struct core *core, enum front_kind kind, const struct message *msg)
{
    const struct map *connected = &core->fronts.connected;

    for (size_t i = 0; i < connected->count; i++)
        if (front_kind_of(connected->entries[i].key) == kind)
            (void)core->send(core, connected->entries[i].key, msg, NULL);
}

int core_open_front_stream(struct core *core, const char *id, struct msg_stream_open *open,
                           const struct link_stream_ops *ops, void *data, struct link_stream **ret,
                           struct aq_error *err)
{
    if (!core->link || !map_gets(&core->fronts.connected, id))
        return aq_fail_kind(err, ENOTCONN, "service-unavailable", "'%s' is not connected", id);
    return link_server_open_stream(core->link, id, open, ops, data, ret, err);
}

const char *core_find_front_url(const struct core *core, enum front_kind kind, const char *id)
{
    const struct map *connected = &core->fronts.connected;
    const struct map_entry *first = NULL;

    for (size_t i = 0; i < connected->count; i++) {
        const struct map_entry *entry = &connected->entries[i];

        if (front_kind_of(entry->key) == kind && (!id || strcmp(entry->key, id) == 0)
            && (!first || strcmp(entry->key, first->key) < 0))
            first = entry;
    }
    return first ? ((const struct front *)first->value)->url : NULL;
}

void core_list_front_urls(const struct core *core, enum front_kind kind,
                          void (*fn)(void *data, const char *url), void *data)
{
    const struct map *connected = &core->fronts.connected;

    for (size_t i = 0; i < connected->count; i++)
        if (front_kind_of(connected->entries[i].key) == kind)
            fn(data, ((const struct front *)connected->entries[i].value)->url);
}
