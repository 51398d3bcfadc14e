/* SPDX-License-Identifier: Apache-2.0 */
/* What the last manager left: loaded before the first request, or not at all.
 *
 * A loop of its own makes this wait for a second at most, whatever the server does.
 */
#include "manager/redis/redis_feature.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/memory.h"

#define DEADLINE_MSEC 1000
#define MINUTES 33 /* that accepted signatures may be dated in, and one more at each end */
#define PAGE_BYTES (256 << 10)
#define SCAN_COUNT "1000"
#define MINUTE_USEC (60 * USEC_PER_SEC)

struct redis_load;

/* Signatures of one minute. */
struct signature_page {
    struct redis_load *load;
    int64_t minute;
    size_t offset; /* of what is read next */
};

/* The window of one key. */
struct window_read {
    struct redis_load *load;
    char access_key[ACCESS_KEY_MAX];
    int64_t count;
};

struct redis_load {
    struct api *api;
    struct redis_client *client;
    struct signature_page pages[MINUTES];
    const struct signature_page *page; /* whose records are read */
    size_t waiting;                    /* for replies */
    struct map keys;                   /* of windows: SCAN may name one twice */
    size_t windows, signatures;
    bool is_late;
};

/* ---- signatures ---- */

static void restore_on_signature(void *data, const char *access_key, const uint8_t signature[32],
                                 unsigned second)
{
    struct redis_load *load = data;
    int64_t date = load->page->minute * MINUTE_USEC + second * USEC_PER_SEC;

    if (core_find_keypair(load->api->core, access_key)
        && replay_check(load->api->replay, access_key, signature, date, clock_realtime_usec(), NULL)
               == 0)
        load->signatures++;
}

static void restore_read_page(struct signature_page *page);

static void restore_on_page(void *data, const struct redis_reply *reply)
{
    struct signature_page *page = data;
    struct redis_load *load = page->load;
    ssize_t used;

    load->waiting--;
    if (!reply || reply->type != REDIS_TEXT)
        return;
    load->page = page;
    used = redis_signatures_read(reply->text, reply->len, restore_on_signature, load);
    if (used <= 0 || reply->len < PAGE_BYTES)
        return;
    page->offset += (size_t)used;
    restore_read_page(page);
}

static void restore_read_page(struct signature_page *page)
{
    struct redis_command command = REDIS_COMMAND_INIT;

    redis_command_adds(&command, "GETRANGE");
    redis_command_addf(&command, SIGNATURES_KEY, (long long)page->minute);
    redis_command_addf(&command, "%zu", page->offset);
    redis_command_addf(&command, "%zu", page->offset + PAGE_BYTES - 1);
    page->load->waiting++;
    redis_client_send(page->load->client, REDIS_DB_RATES, &command, restore_on_page, page);
}

/* ---- windows ---- */

/* The first member of the window and its score: when it began. */
static void restore_on_began(void *data, const struct redis_reply *reply)
{
    struct window_read *read = data;
    struct redis_load *load = read->load;
    int64_t now = clock_realtime_usec(), age;
    double began = NAN;
    char *end = NULL;

    load->waiting--;
    if (reply && reply->type == REDIS_LIST && reply->count == 2
        && reply->items[1].type == REDIS_TEXT)
        began = strtod(reply->items[1].text, &end);
    if (end && !*end && isfinite(began) && fabs(began) < 1e11 && read->count > 0) {
        age = AQ_MAX(now - (int64_t)(began * 1e6), 0);
        if (age < RATE_WINDOW_SEC * USEC_PER_SEC) {
            rate_limiter_restore(load->api->rate, read->access_key, clock_monotonic_usec() - age,
                                 read->count);
            load->windows++;
        }
    }
    free(read);
}

static void restore_on_count(void *data, const struct redis_reply *reply)
{
    struct window_read *read = data;

    read->load->waiting--;
    if (reply)
        (void)redis_reply_get_number(reply, 0, INT32_MAX, &read->count);
}

static void restore_read_window(struct redis_load *load, const char *access_key)
{
    struct redis_command command = REDIS_COMMAND_INIT;
    struct window_read *read;

    if (map_gets(&load->keys, access_key))
        return;
    map_sets(&load->keys, access_key, load);
    read = aq_alloc(sizeof(*read));
    read->load = load;
    memcpy(read->access_key, access_key, strlen(access_key) + 1);
    load->waiting += 2;
    redis_command_adds(&command, "ZCARD");
    redis_command_adds(&command, access_key);
    redis_client_send(load->client, REDIS_DB_RATES, &command, restore_on_count, read);
    redis_command_adds(&command, "ZRANGE");
    redis_command_adds(&command, access_key);
    redis_command_adds(&command, "0");
    redis_command_adds(&command, "0");
    redis_command_adds(&command, "WITHSCORES");
    redis_client_send(load->client, REDIS_DB_RATES, &command, restore_on_began, read);
}

static void restore_scan(struct redis_load *load, const char *cursor);

/* [cursor, [key, ...]]; other keys are in the database, too. */
static void restore_on_scanned(void *data, const struct redis_reply *reply)
{
    struct redis_load *load = data;
    const struct redis_reply *keys;

    load->waiting--;
    if (!reply || reply->type != REDIS_LIST || reply->count != 2
        || reply->items[0].type != REDIS_TEXT || reply->items[1].type != REDIS_LIST)
        return;
    keys = &reply->items[1];
    for (size_t i = 0; i < keys->count; i++)
        if (keys->items[i].type == REDIS_TEXT && keys->items[i].len < ACCESS_KEY_MAX
            && core_find_keypair(load->api->core, keys->items[i].text))
            restore_read_window(load, keys->items[i].text);
    if (strcmp(reply->items[0].text, "0") != 0)
        restore_scan(load, reply->items[0].text);
}

static void restore_scan(struct redis_load *load, const char *cursor)
{
    struct redis_command command = REDIS_COMMAND_INIT;

    redis_command_adds(&command, "SCAN");
    redis_command_adds(&command, cursor);
    redis_command_adds(&command, "COUNT");
    redis_command_adds(&command, SCAN_COUNT);
    load->waiting++;
    redis_client_send(load->client, REDIS_DB_RATES, &command, restore_on_scanned, load);
}

/* ---- all of it ---- */

static void restore_on_late(void *data)
{
    ((struct redis_load *)data)->is_late = true;
}

/* Newest signatures first: they are accepted for longest. */
static void restore_begin(struct redis_load *load)
{
    int64_t last = clock_realtime_usec() / MINUTE_USEC + MINUTES / 2;

    restore_scan(load, "0");
    for (size_t i = 0; i < MINUTES; i++) {
        load->pages[i] = (struct signature_page){ .load = load, .minute = last - (int64_t)i };
        restore_read_page(&load->pages[i]);
    }
}

int redis_restore(struct redis_state *redis, struct aq_error *err)
{
    struct redis_load load = { .api = redis->api };
    struct redis_status status = { .failures = 0 };
    uv_loop_t *loop = aq_alloc(sizeof(*loop));
    struct defer *late;
    bool is_complete;
    int r;

    (void)uv_loop_init(loop);
    r = redis_client_new(&(struct redis_client_options){ .loop = loop,
                                                         .settings = redis->settings,
                                                         .is_quiet = true },
                         &load.client, err);
    if (r < 0) {
        redis_loop_finish(loop);
        return r;
    }
    late = defer_call(loop, DEADLINE_MSEC, restore_on_late, &load);
    restore_begin(&load);
    while (load.waiting && !load.is_late && !status.failures) {
        (void)uv_run(loop, UV_RUN_ONCE);
        redis_client_get_status(load.client, &status);
    }
    is_complete = load.waiting == 0 && status.failures == 0;
    if (!load.is_late)
        defer_cancel(late);
    redis_client_free(load.client);
    redis_loop_finish(loop);
    map_done(&load.keys);
    if (is_complete)
        log_info("loaded %zu rate windows and %zu signatures from Redis server %s", load.windows,
                 load.signatures, status.server);
    else
        log_warning("loaded only %zu rate windows and %zu signatures from Redis server %s: %s",
                    load.windows, load.signatures, status.server,
                    status.problem[0] ? status.problem : "it took more than a second");
    return 0;
}
