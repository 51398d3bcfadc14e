/* SPDX-License-Identifier: Apache-2.0 */
/* A framed stream from its peer: the first byte says how its bytes are cut, the second
 * at which of them the reader pauses, and when it has had enough.
 */
#include <stdint.h>
#include <string.h>

#include "link/link_stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
    struct strbuf bytes;       /* of the records */
    struct stream *connection; /* given on after the end */
    struct strbuf rest;        /* what came after it */
    unsigned pause, close, calls;
    bool is_closed, has_left;
};

static void on_data(void *data, struct link_stream *stream, const char *bytes, size_t len)
{
    struct seen *seen = data;

    if (seen->is_closed || seen->has_left)
        __builtin_trap();
    strbuf_add(&seen->bytes, bytes, len);
    seen->calls++;
    if (seen->pause && seen->calls % seen->pause == 0)
        link_stream_pause(stream, true);
    if (seen->close && seen->calls == seen->close) {
        seen->is_closed = true;
        link_stream_close(stream);
    }
}

static void on_close(void *data, struct link_stream *stream, const struct aq_error *err)
{
    struct seen *seen = data;

    (void)stream;
    (void)err;
    if (seen->is_closed)
        __builtin_trap();
    seen->is_closed = true;
}

static void on_gone(void *owner, struct link_stream *stream)
{
    struct seen *seen = owner;

    (void)stream;
    if (seen->has_left)
        __builtin_trap();
    seen->has_left = true;
}

static void on_rest(void *data, const char *bytes, size_t len)
{
    struct seen *seen = data;

    strbuf_add(&seen->rest, bytes, len);
}

static void on_end(void *data, const struct aq_error *err)
{
    (void)data;
    (void)err;
}

static void on_given(void *owner, struct stream *connection)
{
    static const struct stream_ops ops = { .on_read = on_rest, .on_end = on_end };
    struct seen *seen = owner;

    seen->connection = connection;
    stream_set_ops(connection, &ops, seen);
}

/* What the records say, read in the plainest way. True = they have an end; 'rest' follows it. */
static bool read_plainly(const uint8_t *data, size_t size, struct strbuf *ret, struct strbuf *rest)
{
    while (size >= 4) {
        uint32_t len = (uint32_t)data[0] << 24 | data[1] << 16 | data[2] << 8 | data[3];
        size_t part = AQ_MIN(len, size - 4);

        if (!len) {
            strbuf_add(rest, (const char *)data + 4, size - 4);
            return true;
        }
        strbuf_add(ret, (const char *)data + 4, part);
        data += 4 + part;
        size -= 4 + part;
    }
    return false;
}

static bool is_same(const struct strbuf *a, const struct strbuf *b)
{
    return a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

/* A side that closes early has the beginning of it; the end is read all the same. */
static void check(const struct seen *seen, const uint8_t *data, size_t size)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf bytes = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf rest = STRBUF_INIT;
    bool has_end = read_plainly(data, size, &bytes, &rest);

    if (seen->close && seen->calls >= seen->close && seen->bytes.len < bytes.len)
        bytes.len = seen->bytes.len;
    if (!is_same(&seen->bytes, &bytes) || (seen->connection != NULL) != has_end
        || !is_same(&seen->rest, &rest))
        __builtin_trap();
}

/* Each piece, and what the reader put off. A stream that has gone is not touched. */
static void feed(struct seen *seen, struct link_stream *stream, struct stream *connection,
                 uv_loop_t *loop, const uint8_t *data, size_t size, size_t step)
{
    for (size_t at = 0; at < size; at += step) {
        uint64_t before;

        stream_memory_feed(connection, (const char *)data + at, AQ_MIN(step, size - at));
        do {
            before = seen->bytes.len + seen->rest.len;
            if (!seen->is_closed)
                link_stream_pause(stream, false);
            (void)uv_run(loop, UV_RUN_NOWAIT);
        } while (before != seen->bytes.len + seen->rest.len);
    }
}

static void run(struct seen *seen, uv_loop_t *loop, const uint8_t *data, size_t size, size_t step)
{
    static const struct link_stream_ops ops = { .on_data = on_data, .on_close = on_close };
    static const struct stream_ops no_ops = { .on_open = NULL };
    static const struct strbuf nothing = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct connection_reuse *reuse = connection_reuse_new(on_given, seen);
    struct link_stream *stream = link_stream_new(loop, &(struct uuid){ { 1 } }, &ops, seen);
    struct stream *connection = stream_memory(loop, &out, &no_ops, NULL);

    link_stream_on_gone(stream, on_gone, seen);
    link_stream_attach(stream, connection, &nothing, reuse);
    feed(seen, stream, connection, loop, data, size, step);
    check(seen, data, size);
    if (seen->connection)
        stream_close(seen->connection);
    else
        stream_memory_end(connection);
    (void)uv_run(loop, UV_RUN_DEFAULT);
    connection_reuse_end(reuse);
    if (!seen->is_closed || !seen->has_left)
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seen seen = { .bytes = STRBUF_INIT, .rest = STRBUF_INIT };
    uv_loop_t loop;

    if (size < 2 || size > 4096 || uv_loop_init(&loop) < 0)
        return 0;
    seen.pause = data[1] & 7;
    seen.close = data[1] >> 5;
    run(&seen, &loop, data + 2, size - 2, data[0] + 1u);
    if (uv_loop_close(&loop) < 0)
        __builtin_trap();
    strbuf_done(&seen.bytes);
    strbuf_done(&seen.rest);
    return 0;
}
