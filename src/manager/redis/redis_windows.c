/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of the rate limit and accepted signatures, for the next manager.
 *
 * A window is the sorted set that Backend.AI has under the access key: a member for each request, its
 * time as the score. Signatures are records in a text for each minute of their dates: the length of the
 * access key, the key, 32 bytes of the signature, the second.
 */
#include "manager/redis/redis_feature.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"

#define REQUESTS_MAX 20000 /* of all windows, in one second; more come later */
#define MEMBERS_MAX 500    /* in one command */
#define BATCH_BYTES_MAX (1u << 20)
#define SIGNATURE_SIZE 32u
#define MINUTE_USEC (60 * USEC_PER_SEC)
#define SIGNATURES_SEC "1920" /* past the last time at which one of the minute is accepted */

static void redis_window_add_time(struct redis_command *command, int64_t usec)
{
    redis_command_addf(command, "%lld.%06d", (long long)(usec / USEC_PER_SEC),
                       (int)(usec % USEC_PER_SEC));
}

/* The first request has the time at which the window began. */
static void redis_window_on_change(void *data, const struct rate_change *change)
{
    struct redis_state *redis = data;
    struct redis_command command = REDIS_COMMAND_INIT;
    int64_t now = clock_realtime_usec();
    int64_t began = now - (clock_monotonic_usec() - change->began_usec);

    if (!change->from) {
        redis_command_adds(&command, "DEL");
        redis_command_adds(&command, change->access_key);
        redis_client_send(redis->client, REDIS_DB_RATES, &command, NULL, NULL);
    }
    for (int64_t at = change->from; at < change->count;) {
        int64_t end = AQ_MIN(change->count, at + MEMBERS_MAX);

        redis_command_adds(&command, "ZADD");
        redis_command_adds(&command, change->access_key);
        while (at < end) {
            redis_window_add_time(&command, at == 0 ? began : now);
            redis_command_addf(&command, "%lld", (long long)++at);
        }
        redis_client_send(redis->client, REDIS_DB_RATES, &command, NULL, NULL);
    }
    redis_command_adds(&command, "EXPIREAT");
    redis_command_adds(&command, change->access_key);
    redis_command_addf(&command, "%lld", (long long)(began / USEC_PER_SEC + RATE_WINDOW_SEC + 1));
    redis_client_send(redis->client, REDIS_DB_RATES, &command, NULL, NULL);
}

static void redis_signatures_send(struct redis_state *redis, struct signature_batch *batch)
{
    struct redis_command command = REDIS_COMMAND_INIT;

    redis_command_adds(&command, "APPEND");
    redis_command_addf(&command, SIGNATURES_KEY, (long long)batch->minute);
    redis_command_add(&command, batch->records.data, batch->records.len);
    redis_client_send(redis->client, REDIS_DB_RATES, &command, NULL, NULL);
    redis_command_adds(&command, "EXPIRE");
    redis_command_addf(&command, SIGNATURES_KEY, (long long)batch->minute);
    redis_command_adds(&command, SIGNATURES_SEC);
    redis_client_send(redis->client, REDIS_DB_RATES, &command, NULL, NULL);
    strbuf_done(&batch->records);
}

/* A request that the end of this manager cut off is sent again to the next one, with its signature: one
 * of the last second is not sent yet.
 */
void redis_windows_write(struct redis_state *redis, bool is_last)
{
    size_t kept = 0;

    (void)rate_limiter_take_changes(redis->api->rate, REQUESTS_MAX, redis_window_on_change, redis);
    for (size_t i = 0; i < redis->batch_count; i++) {
        struct signature_batch batch = redis->batches[i];

        if (batch.is_due || is_last) {
            redis->batch_bytes -= batch.records.len;
            redis_signatures_send(redis, &batch);
        } else {
            batch.is_due = true;
            redis->batches[kept++] = batch;
        }
    }
    redis->batch_count = kept;
}

void redis_windows_renew(struct redis_state *redis)
{
    rate_limiter_forget_reports(redis->api->rate);
}

void redis_windows_note(const struct api *api, const struct sign_claim *claim)
{
    struct redis_state *redis = api->redis;
    int64_t minute = claim->date_usec / MINUTE_USEC;
    size_t key = strlen(claim->access_key), i = 0;
    struct strbuf *records;

    while (i < redis->batch_count
           && (redis->batches[i].is_due || redis->batches[i].minute != minute))
        i++;
    if (i == SIGNATURE_BATCHES || redis->batch_bytes > BATCH_BYTES_MAX) {
        redis->signatures_dropped++;
        return;
    }
    if (i == redis->batch_count)
        redis->batches[redis->batch_count++] = (struct signature_batch){ .minute = minute,
                                                                         .records = STRBUF_INIT };
    records = &redis->batches[i].records;
    redis->batch_bytes -= records->len;
    strbuf_addc(records, (char)key);
    strbuf_add(records, claim->access_key, key);
    strbuf_add(records, claim->signature, SIGNATURE_SIZE);
    strbuf_addc(records, (char)(claim->date_usec % MINUTE_USEC / USEC_PER_SEC));
    redis->batch_bytes += records->len;
}

void redis_windows_done(struct redis_state *redis)
{
    for (size_t i = 0; i < redis->batch_count; i++)
        strbuf_done(&redis->batches[i].records);
}

ssize_t redis_signatures_read(const char *bytes, size_t len, signature_record_fn *fn, void *data)
{
    size_t at = 0;

    while (at < len) {
        size_t key = (unsigned char)bytes[at], size = 1 + key + SIGNATURE_SIZE + 1;
        char access_key[SIGN_KEY_MAX + 1];

        if (key == 0 || key > SIGN_KEY_MAX)
            return -EINVAL;
        if (size > len - at)
            break;
        memcpy(access_key, bytes + at + 1, key);
        access_key[key] = '\0';
        if (memchr(access_key, '\0', key) || (unsigned char)bytes[at + size - 1] >= 60)
            return -EINVAL;
        fn(data, access_key, (const uint8_t *)bytes + at + 1 + key,
           (unsigned char)bytes[at + size - 1]);
        at += size;
    }
    return (ssize_t)at;
}
