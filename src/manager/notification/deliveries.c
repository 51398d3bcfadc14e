/* SPDX-License-Identifier: Apache-2.0 */
/* Messages to addresses that others have named: who may be reached, and a queue with turns. */
#include "manager/notification/deliveries.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <netinet/in.h>

#include "base/clock.h"
#include "base/log_budget.h"
#include "base/map.h"
#include "base/memory.h"
#include "http/client.h"
#include "http/defer.h"

#define TRIES_MAX 16     /* under way, of those that waited */
#define TESTS_MAX 4      /* of deliveries_try() */
#define WAITING_MAX 2000 /* of all owners */
#define WAITING_OF_OWNER 100
#define WAITING_BYTES_MAX (16u << 20)
#define ATTEMPTS_MAX 3
#define TICK_MSEC 1000
#define CONNECT_MSEC 5000

static const int64_t delivery_delays[ATTEMPTS_MAX] = { 0, 10 * USEC_PER_SEC, 60 * USEC_PER_SEC };

struct deliveries {
    uv_loop_t *loop;
    const struct network *allowed;
    size_t allowed_count;
    struct tls_context *tls; /* NULL = nobody has needed it yet */
    struct defer *pump;      /* starts what is due; NULL = stopped */
    struct list owners;      /* who has something waiting or under way; whose turn is next first */
    struct map by_id;
    struct list tries; /* under way */
    size_t waiting, waiting_bytes, try_count, test_count;
    size_t dropped; /* since nothing waited */
    struct log_budget budget;
};

struct delivery_owner {
    struct list link;
    struct uuid id;
    struct list waiting; /* struct delivery */
    size_t count;
    bool is_busy;
};

/* A message under way; its connection is nobody else's, as its host is a stranger's. */
struct delivery_try {
    struct list link;
    struct deliveries *deliveries;
    struct delivery_owner *owner; /* NULL = of deliveries_try() */
    struct delivery *delivery;
    struct client *client;
    struct smtp *smtp;
    struct defer *end; /* to be started once it is over */
    struct aq_error err;
    bool is_over, is_final; /* the next try would be no other */
    delivery_done_fn done;
    void *data;
};

void delivery_free(struct delivery *delivery)
{
    if (!delivery)
        return;
    smtp_mail_free(delivery->mail);
    if (delivery->headers)
        explicit_bzero(delivery->headers, strlen(delivery->headers));
    free(delivery->title);
    free(delivery->url);
    free(delivery->headers);
    free(delivery->body);
    free(delivery);
}

static size_t delivery_size(const struct delivery *delivery)
{
    const char *text = delivery->mail ? delivery->mail->text : delivery->body;

    return text ? strlen(text) : 0;
}

/* ---- where to ---- */

static bool deliveries_may_reach(void *data, const struct sockaddr *addr)
{
    struct deliveries *deliveries = data;
    struct aq_error err = { 0 };
    bool is_own;

    for (size_t i = 0; i < deliveries->allowed_count; i++)
        if (network_has(&deliveries->allowed[i], addr))
            return true;
    if (network_is_private(addr))
        return false;
    if (network_is_own(addr, &is_own, &err) < 0) {
        log_limited(&deliveries->budget, LOG_LEVEL_ERR,
                    "rejecting the address of a callback or notification: %s", err.text);
        return false;
    }
    return !is_own;
}

int deliveries_check_host(const struct deliveries *deliveries, const char *field, const char *host,
                          struct aq_error *err)
{
    bool is_localhost = strcasecmp(host, "localhost") == 0;
    struct sockaddr_in6 six;
    struct sockaddr_in four;

    if ((uv_ip4_addr(is_localhost ? "127.0.0.1" : host, 0, &four) == 0
         && !deliveries_may_reach((void *)(uintptr_t)deliveries, (const struct sockaddr *)&four))
        || (uv_ip6_addr(host, 0, &six) == 0
            && !deliveries_may_reach((void *)(uintptr_t)deliveries, (const struct sockaddr *)&six)))
        return aq_fail_as(err, EINVAL, "invalid-api-params", field,
                          "the manager does not connect to %.64s, which is a private address or "
                          "one of its own machine; use a public address, or ask an administrator "
                          "to add its network to [api] callback-networks",
                          host);
    return 0;
}

int deliveries_check_url(const struct deliveries *deliveries, const char *field, const char *url,
                         struct aq_error *err)
{
    struct url parts;

    if ((strncasecmp(url, "http://", 7) != 0 && strncasecmp(url, "https://", 8) != 0)
        || url_parse(url, &parts, NULL) < 0)
        return aq_fail_as(err, EINVAL, "invalid-api-params", field,
                          "must be a URL: http:// or https://, a host, perhaps a port and a path; "
                          "without a user's name");
    return deliveries_check_host(deliveries, field, parts.address.host, err);
}

/* ---- owners ---- */

static struct delivery_owner *deliveries_get_owner(struct deliveries *deliveries,
                                                   const struct uuid *id)
{
    struct delivery_owner *owner = map_get(&deliveries->by_id, id->bytes, sizeof(id->bytes));

    if (owner)
        return owner;
    owner = aq_alloc(sizeof(*owner));
    map_set(&deliveries->by_id, id->bytes, sizeof(id->bytes), owner);
    owner->id = *id;
    list_init(&owner->waiting);
    list_add(&deliveries->owners, &owner->link);
    return owner;
}

static void deliveries_drop_idle_owner(struct deliveries *deliveries, struct delivery_owner *owner)
{
    if (owner->is_busy || owner->count)
        return;
    (void)map_remove(&deliveries->by_id, owner->id.bytes, sizeof(owner->id.bytes));
    list_remove(&owner->link);
    free(owner);
}

/* ---- a try ---- */

/* 'err' NULL = it has arrived. */
static void delivery_try_over(struct delivery_try *try, const struct aq_error *err, bool is_final)
{
    if (try->is_over)
        return;
    try->is_over = true;
    try->is_final = is_final;
    if (err)
        try->err = *err;
    defer_start(try->end, 0); /* neither client can be freed from its own callback */
}

static bool delivery_is_taken(const struct delivery *delivery, unsigned status)
{
    for (size_t i = 0; i < delivery->status_count; i++)
        if (delivery->statuses[i] == status)
            return true;
    return !delivery->status_count && status >= 200 && status < 300;
}

/* What else the server says is not read. */
static void delivery_on_head(struct exchange *ex, const struct message_head *head, void *data)
{
    struct delivery_try *try = data;
    unsigned status = head->status;
    struct aq_error err = { 0 };

    (void)ex;
    if (!delivery_is_taken(try->delivery, status))
        (void)aq_fail(&err, EREMOTEIO, "the server answered with status %u", status);
    delivery_try_over(try, &err, status < 500 && status != 408 && status != 429);
}

static void delivery_on_end(struct exchange *ex, const struct aq_error *err, void *data)
{
    (void)ex;
    delivery_try_over(data, err, false);
}

static void delivery_on_mail(void *data, const struct aq_error *err, bool is_final)
{
    delivery_try_over(data, err, is_final);
}

static const struct exchange_ops delivery_ops = { .on_head = delivery_on_head,
                                                  .on_end = delivery_on_end };

static int delivery_send_http(struct delivery_try *try, struct aq_error *err)
{
    struct deliveries *deliveries = try->deliveries;
    const struct delivery *delivery = try->delivery;
    const struct client_request request = {
        .method = delivery->method,
        .url = delivery->url,
        .headers = delivery->headers,
        .body = delivery->body,
        .body_len = delivery->body ? strlen(delivery->body) : 0,
        .answer_msec = delivery->answer_msec,
    };
    const struct client_options options = { .tls = deliveries->tls,
                                            .connect_msec = CONNECT_MSEC,
                                            .may_reach = deliveries_may_reach,
                                            .reach_data = deliveries };
    struct exchange *exchange;

    try->client = client_new(deliveries->loop, &options);
    return client_send(try->client, &request, &delivery_ops, try, &exchange, err);
}

static int delivery_send(struct delivery_try *try, struct aq_error *err)
{
    struct deliveries *deliveries = try->deliveries;
    const struct smtp_mail *mail = try->delivery->mail;
    bool needs_tls = mail ? mail->use_tls : strncasecmp(try->delivery->url, "https:", 6) == 0;
    int r = 0;

    if (needs_tls && !deliveries->tls)
        r = tls_context_new(&(struct tls_options){ 0 }, &deliveries->tls, err);
    if (r < 0 || !mail)
        return r < 0 ? r : delivery_send_http(try, err);
    return smtp_send(deliveries->loop, mail,
                     &(struct smtp_options){ .tls = deliveries->tls,
                                             .may_reach = deliveries_may_reach,
                                             .reach_data = deliveries },
                     delivery_on_mail, try, &try->smtp, err);
}

static void delivery_try_free(struct delivery_try *try)
{
    struct deliveries *deliveries = try->deliveries;

    try->is_over = true;
    client_free(try->client);
    smtp_free(try->smtp);
    defer_cancel(try->end);
    list_remove(&try->link);
    if (try->owner) {
        deliveries->try_count--;
        try->owner->is_busy = false;
    } else
        deliveries->test_count--;
    free(try);
}

static void delivery_log(struct delivery_try *try)
{
    const struct delivery *delivery = try->delivery;

    if (try->err.code && try->is_final && delivery->title)
        log_limited(&try->deliveries->budget, LOG_LEVEL_WARNING, "%s was not told: %s",
                    delivery->title, try->err.text);
    else if (try->err.code)
        log_debug("a delivery failed: %s", try->err.text);
}

static void delivery_on_over(void *data)
{
    struct delivery_try *try = data;
    struct deliveries *deliveries = try->deliveries;
    struct delivery_owner *owner = try->owner;
    struct delivery *delivery = try->delivery;

    try->is_final |= !try->err.code || delivery->attempts >= ATTEMPTS_MAX;
    if (!owner) {
        try->done(try->data, &try->err);
        delivery_try_free(try);
        delivery_free(delivery);
        return;
    }
    delivery_log(try);
    if (try->is_final) {
        deliveries->waiting--;
        deliveries->waiting_bytes -= delivery_size(delivery);
        owner->count--;
    } else {
        delivery->due_usec = clock_monotonic_usec() + delivery_delays[delivery->attempts];
        list_add(&owner->waiting, &delivery->link);
        delivery = NULL;
    }
    delivery_try_free(try);
    delivery_free(delivery);
    deliveries_drop_idle_owner(deliveries, owner);
    defer_start(deliveries->pump, 0);
}

static struct delivery_try *delivery_try_new(struct deliveries *deliveries,
                                             struct delivery *delivery)
{
    struct delivery_try *try = aq_alloc(sizeof(*try));

    try->end = defer_new(deliveries->loop, delivery_on_over, try);
    try->deliveries = deliveries;
    try->delivery = delivery;
    list_add(&deliveries->tries, &try->link);
    return try;
}

static void delivery_try_begin(struct delivery_try *try)
{
    struct aq_error err = { 0 };

    try->delivery->attempts++;
    if (delivery_send(try, &err) < 0)
        delivery_try_over(try, &err, false);
}

int deliveries_try(struct deliveries *deliveries, struct delivery *delivery, delivery_done_fn done,
                   void *data, struct aq_error *err)
{
    struct delivery_try *try;
    int r = 0;

    if (!deliveries->pump)
        r = aq_fail(err, EAGAIN, "the manager ends");
    else if (deliveries->test_count >= TESTS_MAX)
        r = aq_fail(err, EAGAIN, "%d tests are under way already; try again when they are over",
                    TESTS_MAX);
    if (r < 0) {
        delivery_free(delivery);
        return r;
    }
    try = delivery_try_new(deliveries, delivery);
    try->done = done;
    try->data = data;
    deliveries->test_count++;
    delivery_try_begin(try);
    return 0;
}

/* ---- the queue ---- */

static void deliveries_start(struct deliveries *deliveries, struct delivery_owner *owner,
                             struct delivery *delivery)
{
    struct delivery_try *try = delivery_try_new(deliveries, delivery);

    try->owner = owner;
    deliveries->try_count++;
    list_remove(&delivery->link);
    owner->is_busy = true;
    list_remove(&owner->link);
    list_add(&deliveries->owners, &owner->link);
    delivery_try_begin(try);
}

static struct delivery *delivery_find_due(const struct delivery_owner *owner, int64_t now)
{
    LIST_FOREACH(link, &owner->waiting)
        if (LIST_ENTRY(link, struct delivery, link)->due_usec <= now)
            return LIST_ENTRY(link, struct delivery, link);
    return NULL;
}

static void deliveries_on_pump(void *data)
{
    AQ_CLEANUP(list_cursor_end) struct list_cursor cursor;
    struct deliveries *deliveries = data;
    int64_t now = clock_monotonic_usec();
    struct list *link;

    list_cursor_begin(&cursor,
                      &deliveries->owners); /* a try that fails at once may end its owner */
    while ((link = list_cursor_next(&cursor))) {
        struct delivery_owner *owner = LIST_ENTRY(link, struct delivery_owner, link);
        struct delivery *delivery = owner->is_busy ? NULL : delivery_find_due(owner, now);

        if (deliveries->try_count >= TRIES_MAX)
            break;
        if (delivery)
            deliveries_start(deliveries, owner, delivery);
    }
    if (deliveries->waiting > deliveries->try_count)
        defer_start(deliveries->pump, TICK_MSEC);
    else if (!deliveries->waiting)
        deliveries->dropped = 0;
}

void deliveries_add(struct deliveries *deliveries, const struct uuid *owner_id,
                    struct delivery *delivery)
{
    size_t bytes = delivery_size(delivery);
    bool has_room = deliveries->pump && deliveries->waiting < WAITING_MAX
                    && deliveries->waiting_bytes + bytes <= WAITING_BYTES_MAX;
    struct delivery_owner *owner = has_room ? deliveries_get_owner(deliveries, owner_id) : NULL;

    if (owner && owner->count < WAITING_OF_OWNER) {
        list_add(&owner->waiting, &delivery->link);
        owner->count++;
        deliveries->waiting++;
        deliveries->waiting_bytes += bytes;
        defer_start(deliveries->pump, 0);
        return;
    }
    if (!owner && deliveries->pump && !deliveries->dropped++)
        log_warning("callbacks and notifications are left out: too many wait");
    else if (owner && delivery->title)
        log_limited(&deliveries->budget, LOG_LEVEL_WARNING,
                    "%s was not told: %d messages wait already", delivery->title, WAITING_OF_OWNER);
    delivery_free(delivery);
}

/* ---- beginning and end ---- */

struct deliveries *deliveries_new(uv_loop_t *loop)
{
    struct deliveries *deliveries = aq_alloc(sizeof(*deliveries));

    deliveries->loop = loop;
    list_init(&deliveries->owners);
    list_init(&deliveries->tries);
    deliveries->pump = defer_new(loop, deliveries_on_pump, deliveries);
    return deliveries;
}

void deliveries_allow(struct deliveries *deliveries, const struct network *networks, size_t count)
{
    deliveries->allowed = networks;
    deliveries->allowed_count = count;
}

void deliveries_stop(struct deliveries *deliveries)
{
    const struct aq_error ended = { .code = ECANCELED, .text = "the manager ends" };

    while (!list_is_empty(&deliveries->tries)) {
        struct delivery_try *try = LIST_ENTRY(deliveries->tries.next, struct delivery_try, link);
        struct delivery *delivery = try->delivery;

        if (!try->owner)
            try->done(try->data, &ended);
        delivery_try_free(try);
        delivery_free(delivery);
    }
    while (!list_is_empty(&deliveries->owners)) {
        struct delivery_owner *owner = LIST_ENTRY(deliveries->owners.next, struct delivery_owner,
                                                  link);

        LIST_FOREACH(link, &owner->waiting)
            delivery_free(LIST_ENTRY(link, struct delivery, link));
        list_remove(&owner->link);
        free(owner);
    }
    map_done(&deliveries->by_id);
    defer_cancel(AQ_TAKE(deliveries->pump));
}

void deliveries_free(struct deliveries *deliveries)
{
    if (!deliveries)
        return;
    deliveries_stop(deliveries);
    tls_context_free(deliveries->tls);
    free(deliveries);
}
