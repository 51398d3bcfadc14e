/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of commands, and the way to a server that takes them. */
#include "redis/redis_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/log_budget.h"
#include "base/memory.h"
#include "base/secret_file.h"
#include "base/utf8.h"
#include "base/uuid.h"
#include "http/defer.h"
#include "redis/redis_connection.h"
#include "redis/redis_uri.h"

#define QUEUE_BYTES_MAX (4u << 20)
#define QUEUE_COUNT_MAX 65536u
#define PENDING_MAX (512u << 10) /* sent without a reply: more of it is lost with a connection */
#define TICK_MSEC 500
#define MARK_USEC USEC_PER_SEC
#define MARK_SEC "3600"
#define RETRY_MIN_MSEC 250u
#define RETRY_MAX_MSEC 10000u

struct redis_entry {
    struct list link;
    struct redis_client *client;
    struct redis_command command;
    unsigned db;
    redis_reply_fn *fn;
    void *data;
};

struct redis_client {
    struct redis_client_options options;
    struct arena arena; /* of 'place' */
    struct redis_place place;
    struct tls_context *tls;
    struct redis_connection *connection; /* NULL = none */
    struct address server;               /* that it leads to, or the last one did */
    bool is_up;                          /* greeted by the server */
    bool is_accepted;                    /* it has accepted a write on this connection */
    bool is_refused;                     /* it refuses what is written */
    bool has_refused;                    /* one command, which was logged */
    bool was_told;                       /* that it is away */
    struct log_budget log;               /* for what a server causes */
    size_t sentinel, tried;              /* the one to ask next; how many failed in a row */
    struct defer *retry, *tick;
    unsigned retry_msec;
    struct list queue;
    size_t queue_count, queue_bytes, flying;
    char mark[UUID_TEXT_MAX];
    int64_t marked_usec;     /* monotonic */
    int64_t away_usec;       /* wall clock; 0 = not away */
    uint64_t dropped_before; /* when it went away */
    struct redis_status status;
};

static void client_connect(struct redis_client *client);

/* ---- being away ---- */

static const char *client_name(const struct redis_client *client, char ret[HOST_PORT_MAX])
{
    const struct address *address = &client->server;

    return host_port_write(address->host, address->port, ret);
}

/* Said once, until it is back. Parts of the problem are a server's text. */
static void client_say_away(struct redis_client *client, const char *problem)
{
    char name[HOST_PORT_MAX];

    (void)snprintf(client->status.problem, sizeof(client->status.problem), "%.*s",
                   (int)sizeof(client->status.problem) - 1, problem);
    utf8_make_printable(client->status.problem);
    if (!client->away_usec)
        client->away_usec = clock_realtime_usec();
    if (client->was_told)
        return;
    client->was_told = true;
    client->dropped_before = client->status.dropped;
    if (!client->options.is_quiet)
        log_limited(&client->log, LOG_LEVEL_WARNING,
                    "Redis server %s is not available: %s; continuing with what is in memory",
                    client_name(client, name), client->status.problem);
}

static void client_say_back(struct redis_client *client)
{
    char name[HOST_PORT_MAX];

    if (!client->options.is_quiet && client->was_told)
        log_limited(&client->log, LOG_LEVEL_INFO,
                    "Redis server %s is available again; %llu commands were dropped",
                    client_name(client, name),
                    (unsigned long long)(client->status.dropped - client->dropped_before));
    else if (!client->options.is_quiet && client->away_usec)
        log_info("using Redis server %s", client_name(client, name));
    client->was_told = false;
    client->away_usec = 0;
    client->status.problem[0] = '\0';
}

/* ---- the queue ---- */

static void client_drop(struct redis_client *client, struct redis_entry *entry)
{
    client->status.dropped++;
    if (entry->fn)
        entry->fn(entry->data, NULL);
    strbuf_done(&entry->command.bytes);
    free(entry);
}

static struct redis_entry *client_take(struct redis_client *client)
{
    struct redis_entry *entry = LIST_ENTRY(list_take(&client->queue), struct redis_entry, link);

    client->queue_count--;
    client->queue_bytes -= entry->command.bytes.len;
    return entry;
}

/* Errors after which a new connection finds a server that takes commands: this one is a replica now,
 * starts, or has another password.
 */
static const char *const connection_errors[] = { "READONLY ", "LOADING ", "MASTERDOWN ", "NOAUTH ",
                                                 NULL };
/* Errors of everything that is written, until an administrator acts. */
static const char *const write_errors[] = { "OOM ", "MISCONF ", "NOREPLICAS ", NULL };

static bool client_is_one_of(const struct redis_reply *reply, const char *const *codes)
{
    while (*codes && strncmp(reply->text, *codes, strlen(*codes)) != 0)
        codes++;
    return *codes;
}

static void client_on_failed(void *data, const struct aq_error *err);
static void client_run_queue(struct redis_client *client);

static void client_on_refused(struct redis_client *client, const struct redis_reply *reply)
{
    AQ_CLEANUP(aq_freep) char *text = aq_strdup(reply->text);
    char name[HOST_PORT_MAX];
    struct aq_error err = { 0 };

    utf8_make_printable(text);
    client->status.refused++;
    (void)aq_fail(&err, EREMOTEIO, "it refuses commands: %.250s", text);
    if (client_is_one_of(reply, connection_errors)) {
        client_on_failed(client, &err);
    } else if (client_is_one_of(reply, write_errors)) {
        client->is_refused = true;
        client_say_away(client, err.text);
    } else if (!client->has_refused) {
        client->has_refused = true;
        if (!client->options.is_quiet)
            log_limited(&client->log, LOG_LEVEL_WARNING,
                        "Redis server %s refuses a command: %.250s", client_name(client, name),
                        text);
    }
}

static void client_on_reply(void *data, const struct redis_reply *reply)
{
    struct redis_entry *entry = data;
    struct redis_client *client = entry->client;

    client->flying--;
    if (!reply) {
        client_drop(client, entry);
        return;
    }
    if (entry->fn)
        entry->fn(entry->data, reply);
    strbuf_done(&entry->command.bytes);
    free(entry);
    if (reply->type == REDIS_ERROR)
        client_on_refused(client, reply);
    client_run_queue(client);
}

/* What the server has room for. */
static void client_run_queue(struct redis_client *client)
{
    while (client->is_up && !list_is_empty(&client->queue)
           && redis_connection_pending(client->connection) < PENDING_MAX) {
        struct redis_entry *entry = client_take(client);

        client->flying++;
        client->status.sent++;
        redis_connection_send(client->connection, entry->db, &entry->command, client_on_reply,
                              entry);
        strbuf_done(&entry->command.bytes);
    }
}

void redis_client_send(struct redis_client *client, unsigned db, struct redis_command *command,
                       redis_reply_fn *fn, void *data)
{
    struct redis_entry *entry = aq_alloc(sizeof(*entry));

    *entry = (struct redis_entry){
        .client = client, .command = *command, .db = db, .fn = fn, .data = data
    };
    *command = (struct redis_command)REDIS_COMMAND_INIT;
    list_add(&client->queue, &entry->link);
    client->queue_count++;
    client->queue_bytes += entry->command.bytes.len;
    while (client->queue_bytes > QUEUE_BYTES_MAX || client->queue_count > QUEUE_COUNT_MAX)
        client_drop(client, client_take(client));
    client_run_queue(client);
}

/* ---- the mark ---- */

/* A connection alone does not end being away: a replica and a full server accept it, too. */
static void client_on_accepted(struct redis_client *client)
{
    client->is_accepted = true;
    client->tried = 0;
    client->retry_msec = RETRY_MIN_MSEC;
    client_say_back(client);
}

static void client_on_mark_set(void *data, const struct redis_reply *reply)
{
    struct redis_client *client = data;
    bool was_refused = client->is_refused;

    if (!reply || reply->type == REDIS_ERROR || (client->is_accepted && !was_refused))
        return;
    client->is_refused = false;
    client_on_accepted(client);
    if (was_refused && client->options.on_fresh)
        client->options.on_fresh(client->options.data);
}

static void client_on_mark_read(void *data, const struct redis_reply *reply)
{
    struct redis_client *client = data;

    if (!reply || reply->type == REDIS_ERROR
        || (reply->type == REDIS_TEXT && strcmp(reply->text, client->mark) == 0))
        return;
    if (client->options.on_fresh)
        client->options.on_fresh(client->options.data);
}

static void client_mark(struct redis_client *client)
{
    struct redis_command command = REDIS_COMMAND_INIT;

    redis_command_adds(&command, "GET");
    redis_command_adds(&command, client->options.mark);
    redis_client_send(client, client->options.mark_db, &command, client_on_mark_read, client);
    redis_command_adds(&command, "SET");
    redis_command_adds(&command, client->options.mark);
    redis_command_adds(&command, client->mark);
    redis_command_adds(&command, "EX");
    redis_command_adds(&command, MARK_SEC);
    redis_client_send(client, client->options.mark_db, &command, client_on_mark_set, client);
    client->marked_usec = clock_monotonic_usec();
}

static void client_on_tick(void *data)
{
    struct redis_client *client = data;
    int64_t now = clock_monotonic_usec();

    defer_start(client->tick, TICK_MSEC);
    if (client->connection)
        redis_connection_check(client->connection, now);
    if (client->is_up && client->options.mark && now - client->marked_usec >= MARK_USEC)
        client_mark(client);
    client_run_queue(client);
}

/* ---- connections ---- */

static void client_on_retry(void *data)
{
    client_connect(data);
}

/* The next Sentinel at once, or the first one of all after a while. A server that accepts writes and
 * then ends the connection, again and again, is not asked without a pause.
 */
static void client_plan_retry(struct redis_client *client, bool was_accepted)
{
    bool has_others;

    client->sentinel = (client->sentinel + 1) % client->place.count;
    has_others = client->place.has_sentinels && !was_accepted
                 && ++client->tried < client->place.count;
    defer_start(client->retry, has_others ? 0 : client->retry_msec);
    if (has_others)
        return;
    client->tried = 0;
    client->status.failures++;
    client->retry_msec = AQ_MIN(client->retry_msec * 2, RETRY_MAX_MSEC);
}

static void client_on_failed(void *data, const struct aq_error *err)
{
    struct redis_client *client = data;
    struct redis_connection *connection = AQ_TAKE(client->connection);
    bool was_accepted = client->is_accepted;

    client->is_up = false;
    client->is_accepted = false;
    client->is_refused = false;
    client_say_away(client, err->text);
    redis_connection_close(connection);
    client_plan_retry(client, was_accepted);
}

static void client_on_ready(void *data)
{
    struct redis_client *client = data;
    const struct uuid id = uuid_random();

    client->is_up = true;
    client->has_refused = false;
    client->status.connects++;
    if (client->options.mark) {
        (void)uuid_format(&id, client->mark); /* unlike the server's: on_fresh() follows */
        client_mark(client);
    } else {
        client_on_accepted(client); /* its owner looks at the replies */
    }
    client_run_queue(client);
}

/* A password in a file is read for each connection: it may have changed. */
static int client_open(struct redis_client *client, const struct address *address,
                       void (*on_ready)(void *data), bool is_sentinel, struct aq_error *err)
{
    const struct redis_settings *settings = client->options.settings;
    const char *file = is_sentinel ? settings->sentinel_password_file : settings->password_file;
    AQ_CLEANUP(strbuf_donep) struct strbuf secret = STRBUF_INIT;
    struct redis_connection_options options = {
        .loop = client->options.loop,
        .address = address,
        .tls = client->tls,
        .user = is_sentinel ? NULL : client->place.user,
        .password = is_sentinel ? NULL : client->place.password,
        .is_sentinel = is_sentinel,
        .wants_master = client->place.has_sentinels && !is_sentinel,
        .db = client->place.db,
        .on_ready = on_ready,
        .on_failed = client_on_failed,
        .data = client,
    };
    int r = file ? secret_file_read(file, &secret, err) : 0;

    if (r == 0) {
        if (file)
            options.password = secret.len ? secret.data : "";
        client->server = *address;
        r = redis_connection_open(&options, &client->connection, err);
    }
    if (secret.len)
        explicit_bzero(secret.data, secret.len);
    return r;
}

/* ["10.0.0.1", "6379"], or nothing. */
static int client_read_master(const struct redis_client *client, const struct redis_reply *reply,
                              struct address *ret, struct aq_error *err)
{
    const char *host = reply->type == REDIS_LIST && reply->count == 2 ? reply->items[0].text : NULL;
    int64_t port;

    if (reply->type == REDIS_ERROR)
        return aq_fail(err, EREMOTEIO, "the Sentinel refuses: %.200s", reply->text);
    if (reply->type == REDIS_NULL)
        return aq_fail(err, ENOENT, "the Sentinel does not know the service '%s'",
                       client->place.service);
    if (!host || reply->items[0].type != REDIS_TEXT || !*host
        || host[strspn(host, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.:-_")]
        || reply->items[0].len >= URL_HOST_MAX
        || !redis_reply_get_number(&reply->items[1], 1, UINT16_MAX, &port))
        return aq_fail(err, EPROTO, "the Sentinel names no address of the service");
    *ret = (struct address){ .port = (uint16_t)port };
    memcpy(ret->host, host, reply->items[0].len + 1);
    return 0;
}

static void client_on_master(void *data, const struct redis_reply *reply)
{
    struct redis_client *client = data;
    struct address master;
    struct aq_error err = { 0 };

    if (!reply)
        return;
    if (client_read_master(client, reply, &master, &err) < 0) {
        client_on_failed(client, &err);
        return;
    }
    redis_connection_close(AQ_TAKE(client->connection));
    if (client_open(client, &master, client_on_ready, false, &err) < 0)
        client_on_failed(client, &err);
}

static void client_on_sentinel_ready(void *data)
{
    struct redis_client *client = data;
    struct redis_command command = REDIS_COMMAND_INIT;

    redis_command_adds(&command, "SENTINEL");
    redis_command_adds(&command, "get-master-addr-by-name");
    redis_command_adds(&command, client->place.service);
    redis_connection_send(client->connection, 0, &command, client_on_master, client);
    strbuf_done(&command.bytes);
}

static void client_connect(struct redis_client *client)
{
    const struct address *address = &client->place.addresses[client->sentinel];
    bool has_sentinels = client->place.has_sentinels;
    struct aq_error err = { 0 };

    if (client_open(client, address, has_sentinels ? client_on_sentinel_ready : client_on_ready,
                    has_sentinels, &err)
        < 0)
        client_on_failed(client, &err);
}

/* ---- beginning and end ---- */

static int client_read_settings(struct redis_client *client, struct aq_error *err)
{
    const struct redis_settings *settings = client->options.settings;
    const struct tls_options tls = { .ca_file = settings->ca };
    struct aq_error why = { 0 };

    if (redis_uri_parse(settings->uri, &client->arena, &client->place, &why) < 0)
        return aq_fail_field(err, EINVAL, "redis.uri", "redis.uri is not usable: %s", why.text);
    if (client->place.password && settings->password_file)
        return aq_fail_field(err, EINVAL, "redis.password-file",
                             "redis.uri has a password, too: remove one of them");
    if (settings->ca && !client->place.is_tls)
        return aq_fail_field(err, EINVAL, "redis.ca",
                             "redis.ca needs TLS: redis.uri begins with rediss:// or "
                             "rediss+sentinel://");
    return client->place.is_tls ? tls_context_new(&tls, &client->tls, err) : 0;
}

int redis_client_new(const struct redis_client_options *options, struct redis_client **ret,
                     struct aq_error *err)
{
    struct redis_client *client = aq_alloc(sizeof(*client));
    int r;

    client->options = *options;
    client->retry_msec = RETRY_MIN_MSEC;
    list_init(&client->queue);
    if ((r = client_read_settings(client, err)) < 0) {
        arena_done(&client->arena);
        free(client);
        return r;
    }
    client->away_usec = clock_realtime_usec();
    client->server = client->place.addresses[0];
    client->retry = defer_new(options->loop, client_on_retry, client);
    client->tick = defer_new(options->loop, client_on_tick, client);
    defer_start(client->tick, TICK_MSEC);
    defer_start(client->retry, 0);
    *ret = client;
    return 0;
}

void redis_client_free(struct redis_client *client)
{
    if (!client)
        return;
    client_run_queue(client);
    if (client->connection)
        redis_connection_flush(client->connection);
    defer_cancel(client->retry);
    defer_cancel(client->tick);
    redis_connection_close(AQ_TAKE(client->connection));
    while (!list_is_empty(&client->queue))
        client_drop(client, client_take(client));
    tls_context_free(client->tls);
    arena_done(&client->arena);
    free(client);
}

void redis_client_get_status(const struct redis_client *client, struct redis_status *ret)
{
    *ret = client->status;
    ret->is_ready = client->is_up && client->is_accepted && !client->is_refused;
    ret->away_usec = ret->is_ready ? 0 : client->away_usec;
    ret->queued = client->queue_count + client->flying;
    (void)client_name(client, ret->server);
}
