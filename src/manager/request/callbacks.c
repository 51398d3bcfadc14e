/* SPDX-License-Identifier: Apache-2.0 */
/* callbacks.c - tells a session's callback_url what happens to it */
#include "manager/request/callbacks.h"

#include <errno.h>
#include <ifaddrs.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <netinet/in.h>

#include "base/clock.h"
#include "base/jsonw.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "http/client.h"
#include "http/defer.h"

#define TRIES_MAX 16     /* under way */
#define WAITING_MAX 2000 /* of all users */
#define WAITING_OF_USER 100
#define ATTEMPTS_MAX 3
#define TICK_MSEC 1000
#define CONNECT_MSEC 5000
#define ANSWER_MSEC 10000

static const int64_t callback_delays[ATTEMPTS_MAX] = { 0, 10 * USEC_PER_SEC, 60 * USEC_PER_SEC };

struct callbacks {
    struct core *core;
    struct core_subscriber *subscriber;
    const struct network *allowed;
    size_t allowed_count;
    struct tls_context *tls; /* NULL = nobody has named https yet */
    struct defer *pump;      /* starts what is due */
    struct list users;       /* who has something waiting or under way; whose turn is next first */
    struct map by_id;
    struct list tries; /* under way */
    size_t waiting, try_count;
    size_t dropped; /* since nothing waited */
};

struct callback_user {
    struct list link;
    struct uuid id;
    struct list waiting; /* struct callback */
    size_t count;
    bool is_busy;
};

struct callback {
    struct list link;
    char *url, *body;
    unsigned attempts;
    int64_t due_usec; /* monotonic */
};

/* A message under way; its connection is nobody else's, as its host is a stranger's. */
struct callback_try {
    struct list link;
    struct callbacks *callbacks;
    struct callback_user *user;
    struct callback *callback;
    struct client *client;
    struct defer *end; /* to be started once it is over */
    unsigned status;   /* 0 = no answer */
    bool is_over;
};

static void callback_free(struct callback *callback)
{
    free(callback->url);
    free(callback->body);
    free(callback);
}

/* ---- where to ---- */

static bool callbacks_is_own_address(const struct sockaddr *addr)
{
    struct ifaddrs *list = NULL;
    bool found = false;

    if (getifaddrs(&list) < 0)
        return true; /* to be safe */
    for (const struct ifaddrs *i = list; i && !found; i = i->ifa_next) {
        char text[INET6_ADDRSTRLEN] = "";
        struct network one;

        if (!i->ifa_addr || i->ifa_addr->sa_family != addr->sa_family)
            continue;
        if (addr->sa_family == AF_INET)
            (void)uv_ip4_name((const struct sockaddr_in *)i->ifa_addr, text, sizeof(text));
        else
            (void)uv_ip6_name((const struct sockaddr_in6 *)i->ifa_addr, text, sizeof(text));
        found = network_parse(text, &one) == 0 && network_has(&one, addr);
    }
    freeifaddrs(list);
    return found;
}

static bool callbacks_may_reach(void *data, const struct sockaddr *addr)
{
    const struct callbacks *callbacks = data;

    for (size_t i = 0; i < callbacks->allowed_count; i++)
        if (network_has(&callbacks->allowed[i], addr))
            return true;
    return !network_is_private(addr) && !callbacks_is_own_address(addr);
}

int callbacks_check_url(const struct callbacks *callbacks, const char *url, struct aq_error *err)
{
    bool is_localhost;
    struct sockaddr_in6 six;
    struct sockaddr_in four;
    struct url parts;

    if ((strncasecmp(url, "http://", 7) != 0 && strncasecmp(url, "https://", 8) != 0)
        || url_parse(url, &parts, NULL) < 0)
        return aq_fail_as(err, EINVAL, "invalid-api-params", "callback_url",
                          "must be a URL: http:// or https://, a host, perhaps a port and a path; "
                          "without a user's name");
    is_localhost = strcasecmp(parts.address.host, "localhost") == 0;
    if ((uv_ip4_addr(is_localhost ? "127.0.0.1" : parts.address.host, 0, &four) == 0
         && !callbacks_may_reach((void *)(uintptr_t)callbacks, (const struct sockaddr *)&four))
        || (uv_ip6_addr(parts.address.host, 0, &six) == 0
            && !callbacks_may_reach((void *)(uintptr_t)callbacks, (const struct sockaddr *)&six)))
        return aq_fail_as(err, EINVAL, "invalid-api-params", "callback_url",
                          "%.64s is no address that the manager may connect to: it is private, or "
                          "the manager's; administrators can allow its network by [api] "
                          "callback-networks",
                          parts.address.host);
    return 0;
}

/* ---- users ---- */

static struct callback_user *callbacks_get_user(struct callbacks *callbacks, const struct uuid *id)
{
    struct callback_user *user = map_get(&callbacks->by_id, id->bytes, sizeof(id->bytes));

    if (user || !(user = calloc(1, sizeof(*user))))
        return user;
    if (map_set(&callbacks->by_id, id->bytes, sizeof(id->bytes), user) < 0) {
        free(user);
        return NULL;
    }
    user->id = *id;
    list_init(&user->waiting);
    list_add(&callbacks->users, &user->link);
    return user;
}

static void callbacks_drop_idle_user(struct callbacks *callbacks, struct callback_user *user)
{
    if (user->is_busy || user->count)
        return;
    (void)map_remove(&callbacks->by_id, user->id.bytes, sizeof(user->id.bytes));
    list_remove(&user->link);
    free(user);
}

/* ---- sending ---- */

static void callback_try_over(struct callback_try *try)
{
    if (try->is_over)
        return;
    try->is_over = true;
    defer_start(try->end, 0); /* the client cannot be freed from its own callback */
}

static void callback_on_head(struct exchange *ex, const struct message_head *head, void *data)
{
    struct callback_try *try = data;

    (void)ex;
    try->status = head->status;
    callback_try_over(try); /* what else it says is not read */
}

static void callback_on_end(struct exchange *ex, const struct aq_error *err, void *data)
{
    (void)ex;
    if (err->code)
        log_debug("a callback failed: %s", err->text);
    callback_try_over(data);
}

static const struct exchange_ops callback_ops = { .on_head = callback_on_head,
                                                  .on_end = callback_on_end };

/* An answer that will be no other the next time is not asked for again. */
static bool callback_is_final(const struct callback_try *try)
{
    return try->callback->attempts >= ATTEMPTS_MAX
           || (try->status && try->status < 500 && try->status != 408 && try->status != 429);
}

static void callback_try_free(struct callback_try *try)
{
    struct callbacks *callbacks = try->callbacks;

    try->is_over = true;
    client_free(try->client);
    defer_cancel(try->end);
    list_remove(&try->link);
    callbacks->try_count--;
    try->user->is_busy = false;
    free(try);
}

static void callback_on_over(void *data)
{
    struct callback_try *try = data;
    struct callbacks *callbacks = try->callbacks;
    struct callback_user *user = try->user;
    struct callback *callback = try->callback;

    if (callback_is_final(try)) {
        callback_free(callback);
        callbacks->waiting--;
        user->count--;
    } else {
        callback->due_usec = clock_monotonic_usec() + callback_delays[callback->attempts];
        list_add(&user->waiting, &callback->link);
    }
    callback_try_free(try);
    callbacks_drop_idle_user(callbacks, user);
    defer_start(callbacks->pump, 0);
}

static int callback_send(struct callback_try *try, struct aq_error *err)
{
    struct callbacks *callbacks = try->callbacks;
    const struct client_request request = {
        .method = METHOD_POST,
        .url = try->callback->url,
        .headers = "Content-Type: application/json\r\nUser-Agent: aliquot-manager\r\n",
        .body = try->callback->body,
        .body_len = strlen(try->callback->body),
        .answer_msec = ANSWER_MSEC,
    };
    struct client_options options = { .connect_msec = CONNECT_MSEC,
                                      .may_reach = callbacks_may_reach,
                                      .reach_data = callbacks };
    struct exchange *exchange;
    int r = 0;

    if (strncasecmp(request.url, "https:", 6) == 0 && !callbacks->tls)
        r = tls_context_new(&(struct tls_options){ 0 }, &callbacks->tls, err);
    options.tls = callbacks->tls;
    if (r == 0)
        r = client_new(core_loop(callbacks->core), &options, &try->client, err);
    return r < 0 ? r : client_send(try->client, &request, &callback_ops, try, &exchange, err);
}

static bool callbacks_start(struct callbacks *callbacks, struct callback_user *user,
                            struct callback *callback)
{
    struct callback_try *try = calloc(1, sizeof(*try));
    struct aq_error err = { 0 };

    if (try)
        try->end = defer_new(core_loop(callbacks->core), callback_on_over, try);
    if (!try || !try->end) {
        free(try);
        return false; /* later */
    }
    try->callbacks = callbacks;
    try->user = user;
    try->callback = callback;
    callback->attempts++;
    list_remove(&callback->link);
    list_add(&callbacks->tries, &try->link);
    callbacks->try_count++;
    user->is_busy = true;
    list_remove(&user->link);
    list_add(&callbacks->users, &user->link);
    if (callback_send(try, &err) < 0) {
        log_debug("a callback was not sent: %s", err.text);
        callback_try_over(try);
    }
    return true;
}

static struct callback *callback_find_due(const struct callback_user *user, int64_t now)
{
    LIST_FOREACH(link, &user->waiting)
        if (LIST_ENTRY(link, struct callback, link)->due_usec <= now)
            return LIST_ENTRY(link, struct callback, link);
    return NULL;
}

static void callbacks_on_pump(void *data)
{
    struct callbacks *callbacks = data;
    int64_t now = clock_monotonic_usec();

    LIST_FOREACH(link, &callbacks->users) {
        struct callback_user *user = LIST_ENTRY(link, struct callback_user, link);
        struct callback *callback = user->is_busy ? NULL : callback_find_due(user, now);

        if (callbacks->try_count >= TRIES_MAX
            || (callback && !callbacks_start(callbacks, user, callback)))
            break;
    }
    if (callbacks->waiting > callbacks->try_count)
        defer_start(callbacks->pump, TICK_MSEC);
    else if (!callbacks->waiting)
        callbacks->dropped = 0;
}

/* ---- what is told ---- */

static const char *const callback_events[] = { "enqueued",   "scheduled", "preparing", "started",
                                               "terminated", "cancelled", "success",   "failure" };

/* As Backend.AI calls it; NULL = it does not tell. */
static const char *callback_event_name(const struct core_event *event)
{
    static const char prefix[] = "session_";

    if (event->kernel || strncmp(event->name, prefix, sizeof(prefix) - 1) != 0)
        return NULL;
    for (size_t i = 0; i < AQ_COUNT(callback_events); i++)
        if (strcmp(event->name + sizeof(prefix) - 1, callback_events[i]) == 0)
            return callback_events[i];
    return NULL;
}

static char *callback_make_body(const char *name, const struct core_event *event)
{
    struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);
    char id[UUID_TEXT_MAX], when[CLOCK_ISO_MAX];

    jsonw_object_begin(&w);
    jsonw_member_str(&w, "type", "session_lifecycle");
    jsonw_member_str(&w, "event", name);
    jsonw_member_str(&w, "session_id", uuid_format(&event->session->id, id));
    jsonw_member_str(&w, "when", clock_format_iso(event->at_usec, when));
    jsonw_object_end(&w);
    return strbuf_steal(&text);
}

static void callbacks_add(struct callbacks *callbacks, const char *url, const char *name,
                          const struct core_event *event)
{
    struct callback_user *user = callbacks->waiting < WAITING_MAX
                                     ? callbacks_get_user(callbacks, &event->session->user_id)
                                     : NULL;
    struct callback *callback = NULL;

    if (user && user->count < WAITING_OF_USER && (callback = calloc(1, sizeof(*callback)))) {
        callback->url = strdup(url);
        callback->body = callback_make_body(name, event);
    }
    if (callback && callback->url && callback->body) {
        list_add(&user->waiting, &callback->link);
        user->count++;
        callbacks->waiting++;
        defer_start(callbacks->pump, 0);
        return;
    }
    if (callback)
        callback_free(callback);
    if (user)
        callbacks_drop_idle_user(callbacks, user);
    else if (!callbacks->dropped++)
        log_warning("callbacks of sessions are left out: too many wait, or memory is short");
}

static void callbacks_on_event(void *data, const struct core_event *event)
{
    const char *name = callback_event_name(event);
    const struct session_spec *spec = event->session->spec;

    if (name && spec && spec->callback_url)
        callbacks_add(data, spec->callback_url, name, event);
}

/* ---- beginning and end ---- */

struct callbacks *callbacks_new(struct core *core)
{
    struct callbacks *callbacks = calloc(1, sizeof(*callbacks));

    if (!callbacks)
        return NULL;
    callbacks->core = core;
    list_init(&callbacks->users);
    list_init(&callbacks->tries);
    callbacks->pump = defer_new(core_loop(core), callbacks_on_pump, callbacks);
    callbacks->subscriber = core_subscribe(core, NULL, callbacks_on_event, callbacks);
    if (callbacks->pump && callbacks->subscriber)
        return callbacks;
    callbacks_free(callbacks);
    return NULL;
}

void callbacks_allow(struct callbacks *callbacks, const struct network *networks, size_t count)
{
    callbacks->allowed = networks;
    callbacks->allowed_count = count;
}

void callbacks_free(struct callbacks *callbacks)
{
    if (!callbacks)
        return;
    if (callbacks->subscriber)
        core_unsubscribe(callbacks->core, callbacks->subscriber);
    while (!list_is_empty(&callbacks->tries)) {
        struct callback_try *try = LIST_ENTRY(callbacks->tries.next, struct callback_try, link);

        callback_free(try->callback);
        callback_try_free(try);
    }
    while (!list_is_empty(&callbacks->users)) {
        struct callback_user *user = LIST_ENTRY(callbacks->users.next, struct callback_user, link);

        LIST_FOREACH(link, &user->waiting)
            callback_free(LIST_ENTRY(link, struct callback, link));
        list_remove(&user->link);
        free(user);
    }
    map_done(&callbacks->by_id);
    tls_context_free(callbacks->tls);
    defer_cancel(callbacks->pump);
    free(callbacks);
}
