/* SPDX-License-Identifier: Apache-2.0 */
/* One connection: the greeting, and commands with their replies. */
#include "redis/redis_connection.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "http/defer.h"
#include "http/stream.h"

#define CONNECT_MSEC 3000
#define ANSWER_USEC (5 * USEC_PER_SEC)

/* A command without a reply yet. */
struct redis_flight {
    struct list link;
    redis_reply_fn *fn;
    void *data;
    int64_t sent_usec; /* monotonic */
    size_t bytes;
};

struct redis_connection {
    struct redis_connection_options options;
    char *user, *password;
    struct stream *stream;
    struct defer *later; /* sends 'out' */
    struct strbuf in, out;
    struct arena arena; /* of the reply at hand */
    struct list flights;
    size_t pending;
    unsigned db; /* the one that commands go to now */
    bool is_reading, is_closed, has_failed;
};

static void connection_fail(struct redis_connection *c, const struct aq_error *err)
{
    struct aq_error why = *err;

    if (c->has_failed || c->is_closed)
        return;
    c->has_failed = true;
    utf8_make_printable(why.text); /* parts of it are the server's */
    stream_close(AQ_TAKE(c->stream));
    c->options.on_failed(c->options.data, &why);
}

/* ---- commands ---- */

/* The words of a command, after their count. */
static void connection_queue(struct redis_connection *c, const struct redis_command *command,
                             redis_reply_fn *fn, void *data)
{
    struct redis_flight *flight = aq_alloc(sizeof(*flight));

    flight->fn = fn;
    flight->data = data;
    flight->sent_usec = clock_monotonic_usec();
    flight->bytes = command->bytes.len;
    c->pending += flight->bytes;
    list_add(&c->flights, &flight->link);
    strbuf_addf(&c->out, "*%u\r\n", command->count);
    strbuf_add(&c->out, command->bytes.data, command->bytes.len);
    defer_start(c->later, 0);
}

static void connection_on_select(void *data, const struct redis_reply *reply)
{
    struct redis_connection *c = data;
    struct aq_error err = { 0 };

    if (!reply || reply->type != REDIS_ERROR)
        return;
    (void)aq_fail(&err, EREMOTEIO, "it refuses databases %u to %u: %.150s", c->options.db,
                  c->options.db + REDIS_DATABASES - 1, reply->text);
    connection_fail(c, &err);
}

static void connection_select(struct redis_connection *c, unsigned db, redis_reply_fn *fn)
{
    struct redis_command select = REDIS_COMMAND_INIT;

    redis_command_adds(&select, "SELECT");
    redis_command_addf(&select, "%u", db);
    connection_queue(c, &select, fn, c);
    c->db = db;
    strbuf_done(&select.bytes);
}

void redis_connection_send(struct redis_connection *c, unsigned db,
                           const struct redis_command *command, redis_reply_fn *fn, void *data)
{
    if (!c->options.is_sentinel && c->db != c->options.db + db)
        connection_select(c, c->options.db + db, connection_on_select);
    connection_queue(c, command, fn, data);
}

void redis_connection_flush(struct redis_connection *c)
{
    if (!c->stream || !c->out.len)
        return;
    (void)stream_write(c->stream, c->out.data, c->out.len); /* failures come as on_end() */
    strbuf_clear(&c->out);
}

static void connection_on_later(void *data)
{
    redis_connection_flush(data);
}

size_t redis_connection_pending(const struct redis_connection *c)
{
    return c->pending;
}

void redis_connection_check(struct redis_connection *c, int64_t now_usec)
{
    const struct redis_flight *oldest = LIST_ENTRY(c->flights.next, struct redis_flight, link);
    struct aq_error err = { 0 };

    if (list_is_empty(&c->flights) || now_usec - oldest->sent_usec < ANSWER_USEC)
        return;
    (void)aq_fail(&err, ETIMEDOUT, "it did not answer within %d s",
                  (int)(ANSWER_USEC / USEC_PER_SEC));
    connection_fail(c, &err);
}

/* ---- the greeting ---- */

static void connection_on_login(void *data, const struct redis_reply *reply)
{
    struct redis_connection *c = data;
    struct aq_error err = { 0 };

    if (!reply || reply->type != REDIS_ERROR)
        return;
    (void)aq_fail(&err, EACCES, "it refuses the login: %.200s", reply->text);
    connection_fail(c, &err);
}

/* A replica that a Sentinel has not yet heard of as one takes no writes. */
static void connection_on_role(void *data, const struct redis_reply *reply)
{
    struct redis_connection *c = data;
    struct aq_error err = { 0 };

    if (!reply
        || (reply->type == REDIS_LIST && reply->count && reply->items[0].type == REDIS_TEXT
            && strcmp(reply->items[0].text, "master") == 0))
        return;
    if (reply->type == REDIS_ERROR)
        (void)aq_fail(&err, EREMOTEIO, "it refuses ROLE: %.200s", reply->text);
    else
        (void)aq_fail(&err, EREMOTEIO, "it is a replica");
    connection_fail(c, &err);
}

/* The last word of the greeting: all before it was accepted. */
static void connection_on_greeted(void *data, const struct redis_reply *reply)
{
    struct redis_connection *c = data;
    struct aq_error err = { 0 };

    if (!reply)
        return;
    if (reply->type != REDIS_ERROR) {
        c->options.on_ready(c->options.data);
        return;
    }
    (void)aq_fail(&err, EREMOTEIO, "it refuses commands: %.200s", reply->text);
    connection_fail(c, &err);
}

static void connection_ignore(void *data, const struct redis_reply *reply)
{
    (void)data;
    (void)reply;
}

static void connection_greet(struct redis_connection *c, const char *const *words, size_t count,
                             redis_reply_fn *fn)
{
    struct redis_command command = REDIS_COMMAND_INIT;

    for (size_t i = 0; i < count; i++)
        redis_command_adds(&command, words[i]);
    connection_queue(c, &command, fn, c);
    explicit_bzero(command.bytes.data, command.bytes.len);
    strbuf_done(&command.bytes);
}

static void connection_on_open(void *data)
{
    struct redis_connection *c = data;
    const char *const name[] = { "CLIENT", "SETNAME", "aliquot-manager" };

    if (c->user)
        connection_greet(c, (const char *const[]){ "AUTH", c->user, c->password }, 3,
                         connection_on_login);
    else if (c->password)
        connection_greet(c, (const char *const[]){ "AUTH", c->password }, 2, connection_on_login);
    connection_greet(c, name, AQ_COUNT(name), connection_ignore); /* may not be allowed */
    if (c->options.wants_master)
        connection_greet(c, (const char *const[]){ "ROLE" }, 1, connection_on_role);
    for (unsigned i = REDIS_DATABASES; !c->options.is_sentinel && i-- > 0;)
        connection_select(c, c->options.db + i, connection_on_select);
    connection_greet(c, (const char *const[]){ "PING" }, 1, connection_on_greeted);
}

/* ---- replies ---- */

/* False after a failure. */
static bool connection_take_reply(struct redis_connection *c, const struct redis_reply *reply)
{
    struct list *link = list_take(&c->flights);
    struct redis_flight *flight = link ? LIST_ENTRY(link, struct redis_flight, link) : NULL;
    struct aq_error err = { 0 };

    if (!flight) {
        (void)aq_fail(&err, EPROTO, "it sent a reply to no command");
        connection_fail(c, &err);
        return false;
    }
    c->pending -= flight->bytes;
    flight->fn(flight->data, reply);
    free(flight);
    return !c->has_failed && !c->is_closed;
}

static void connection_free(struct redis_connection *c)
{
    arena_done(&c->arena);
    strbuf_done(&c->in);
    strbuf_done(&c->out);
    if (c->password)
        explicit_bzero(c->password, strlen(c->password));
    free(c->password);
    free(c->user);
    free(c);
}

static void connection_on_read(void *data, const char *bytes, size_t len)
{
    struct redis_connection *c = data;
    struct redis_reply reply;
    struct aq_error err = { 0 };
    ssize_t used = 1;
    size_t at = 0;

    strbuf_add(&c->in, bytes, len);
    c->is_reading = true;
    while (at < c->in.len) {
        used = redis_reply_read(c->in.data + at, c->in.len - at, &c->arena, &reply, &err);
        if (used <= 0)
            break;
        at += (size_t)used;
        if (!connection_take_reply(c, &reply))
            break;
        arena_clear(&c->arena, 1 << 16);
    }
    if (used < 0)
        connection_fail(c, &err);
    c->is_reading = false;
    if (c->is_closed) {
        connection_free(c);
        return;
    }
    strbuf_consume(&c->in, at);
    arena_clear(&c->arena, 1 << 16);
}

static void connection_on_end(void *data, const struct aq_error *err)
{
    struct aq_error why = *err;

    if (!why.code)
        (void)aq_fail(&why, ECONNRESET, "it closed the connection");
    connection_fail(data, &why);
}

static const struct stream_ops connection_ops = { .on_open = connection_on_open,
                                                  .on_read = connection_on_read,
                                                  .on_end = connection_on_end };

/* ---- beginning and end ---- */

int redis_connection_open(const struct redis_connection_options *options,
                          struct redis_connection **ret, struct aq_error *err)
{
    const struct stream_options dial = { .tls = options->tls, .connect_msec = CONNECT_MSEC };
    struct redis_connection *c = aq_alloc(sizeof(*c));
    int r;

    c->options = *options;
    c->user = aq_strdup(options->user);
    c->password = aq_strdup(options->password);
    strbuf_init(&c->in);
    strbuf_init(&c->out);
    list_init(&c->flights);
    r = stream_connect(options->loop, options->address, &dial, &connection_ops, c, &c->stream, err);
    if (r < 0) {
        connection_free(c);
        return r;
    }
    c->later = defer_new(options->loop, connection_on_later, c);
    *ret = c;
    return 0;
}

void redis_connection_close(struct redis_connection *c)
{
    struct list *link;

    if (!c)
        return;
    c->is_closed = true;
    defer_cancel(AQ_TAKE(c->later));
    stream_close(AQ_TAKE(c->stream));
    while ((link = list_take(&c->flights))) {
        struct redis_flight *flight = LIST_ENTRY(link, struct redis_flight, link);

        flight->fn(flight->data, NULL);
        free(flight);
    }
    if (!c->is_reading) /* else its reader does */
        connection_free(c);
}
