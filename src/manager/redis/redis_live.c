/* SPDX-License-Identifier: Apache-2.0 */
/* Live statistics of agents and kernels, and when agents were heard last.
 *
 * An agent's are under its id, a kernel's under its own, as MessagePack of what clients see as live_stat.
 * Each second has its share of them, so that a large cluster does not hold up the loop; all of a small
 * one are written every five seconds.
 */
#include "manager/redis/redis_feature.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "manager/core/statistics.h"
#include "model/measured.h"
#include "redis/redis_msgpack.h"

#define ROUND_SEC 5
#define SHARE_MAX 400u  /* kernels, and likewise agents, of one second */
#define AGENT_SEC "120" /* as Backend.AI keeps them */
#define KERNEL_SEC "86400"
#define HEARTBEATS "agent.last_seen"
#define HEARTBEATS_NEXT "agent.last_seen.next" /* while it is written */
#define HEARTBEATS_USEC (3 * USEC_PER_SEC)

/* 'text' is JSON, and is emptied. */
static void redis_live_set(struct redis_state *redis, const char *key, struct strbuf *text,
                           const char *seconds)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf packed = STRBUF_INIT;
    struct redis_command command = REDIS_COMMAND_INIT;
    json_t *value = json_loadb(text->data, text->len, 0, NULL);

    strbuf_clear(text);
    if (!value)
        return;
    redis_msgpack_json(&packed, value);
    json_decref(value);
    redis_command_adds(&command, "SET");
    redis_command_adds(&command, key);
    redis_command_add(&command, packed.data, packed.len);
    redis_command_adds(&command, "EX");
    redis_command_adds(&command, seconds);
    redis_client_send(redis->client, REDIS_DB_STATISTICS, &command, NULL, NULL);
}

/* How many kernels of the session were written. */
static size_t redis_live_set_kernels(struct redis_state *redis, const struct session *session,
                                     struct strbuf *text)
{
    char id[UUID_TEXT_MAX];
    size_t count = 0;

    for (size_t i = 0; i < session->kernel_count; i++) {
        const struct measured *measured = core_kernel_measured(redis->api->core,
                                                               &session->kernels[i].id);
        struct jsonw w = jsonw_make(text);

        if (!measured || !measured->at_usec)
            continue;
        measured_write(measured, &w);
        redis_live_set(redis, uuid_format(&session->kernels[i].id, id), text, KERNEL_SEC);
        count++;
    }
    return count;
}

static void redis_live_write_kernels(struct redis_state *redis)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    const struct core *core = redis->api->core;
    const struct session *session = core_find_session(core, &redis->next_session);
    size_t share = core_count_sessions(core) / ROUND_SEC + 1;

    if (!session)
        session = core_next_session(core, NULL);
    for (size_t kernels = 0; session && share-- > 0 && kernels < SHARE_MAX;
         session = core_next_session(core, session))
        kernels += redis_live_set_kernels(redis, session, &text);
    redis->next_session = session ? session->id : (struct uuid){ .bytes = { 0 } };
}

static void redis_live_write_agents(struct redis_state *redis)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    const struct core *core = redis->api->core;
    size_t share = AQ_MIN(core_get_counts(core).agents / ROUND_SEC + 1, SHARE_MAX);

    for (const struct agent *agent; share-- > 0; redis->next_agent++) {
        const struct agent_measured *measured;
        struct jsonw w = jsonw_make(&text);

        if (!(agent = core_get_agent(core, redis->next_agent))) {
            redis->next_agent = 0;
            return;
        }
        if (!(measured = core_agent_measured(core, agent->id)))
            continue;
        agent_measured_write(measured, &w);
        redis_live_set(redis, agent->id, &text, AGENT_SEC);
    }
}

static void redis_live_delete(struct redis_state *redis, const char *key)
{
    struct redis_command command = REDIS_COMMAND_INIT;

    redis_command_adds(&command, "DEL");
    redis_command_adds(&command, key);
    redis_client_send(redis->client, REDIS_DB_LIVE, &command, NULL, NULL);
}

/* A refused hash leaves the last one to readers. */
static void redis_live_on_heartbeats(void *data, const struct redis_reply *reply)
{
    struct redis_state *redis = data;
    struct redis_command command = REDIS_COMMAND_INIT;

    redis->is_replacing = false;
    if (!reply || reply->type == REDIS_ERROR)
        return;
    redis_command_adds(&command, "RENAME");
    redis_command_adds(&command, HEARTBEATS_NEXT);
    redis_command_adds(&command, HEARTBEATS);
    redis_client_send(redis->client, REDIS_DB_LIVE, &command, NULL, NULL);
}

/* All agents that are alive, in place of the former ones. They are written under another key, which
 * is renamed, so that readers see all of the one or of the other, also where a command is refused or
 * lost.
 */
static void redis_live_write_heartbeats(struct redis_state *redis)
{
    const struct core *core = redis->api->core;
    struct redis_command command = REDIS_COMMAND_INIT;
    const struct agent *agent;

    redis_command_adds(&command, "HSET");
    redis_command_adds(&command, HEARTBEATS_NEXT);
    for (size_t i = 0; (agent = core_get_agent(core, i)); i++) {
        int64_t heard = core_agent_contact_usec(core, agent->id);

        if (agent->status != AGENT_ALIVE || !heard)
            continue;
        redis_command_adds(&command, agent->id);
        redis_command_addf(&command, "%lld.%03d", (long long)(heard / USEC_PER_SEC),
                           (int)(heard % USEC_PER_SEC / USEC_PER_MSEC));
    }
    redis_live_delete(redis, HEARTBEATS_NEXT);
    if (command.count > 2) {
        redis->is_replacing = true;
        redis_client_send(redis->client, REDIS_DB_LIVE, &command, redis_live_on_heartbeats, redis);
    } else {
        redis_live_delete(redis, HEARTBEATS);
    }
    strbuf_done(&command.bytes);
}

void redis_live_write(struct redis_state *redis)
{
    int64_t now = clock_monotonic_usec();

    redis_live_write_kernels(redis);
    redis_live_write_agents(redis);
    if (redis->is_replacing || now - redis->heartbeats_usec < HEARTBEATS_USEC)
        return;
    redis->heartbeats_usec = now;
    redis_live_write_heartbeats(redis);
}
