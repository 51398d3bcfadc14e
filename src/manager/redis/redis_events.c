/* SPDX-License-Identifier: Apache-2.0 */
/* Events of sessions on the stream on which Backend.AI's managers and agents publish theirs.
 *
 * An entry has the event's name, its source (the agent of a kernel, or "manager") and its arguments, a
 * MessagePack list. Events that Backend.AI does not have are left out.
 */
#include "manager/redis/redis_feature.h"

#include <string.h>

#include "redis/redis_msgpack.h"

#define STREAM "events"
#define STREAM_MAX "10000" /* entries that are kept, roughly */

enum event_args {
    ARGS_CREATION,        /* id, creation id, reason */
    ARGS_KERNEL_CREATION, /* the same and a map of details */
    ARGS_END,             /* id, reason */
    ARGS_EXIT,            /* id, reason, exit status */
    ARGS_ID,
};

static const struct redis_event {
    const char *name;
    enum event_args args;
} redis_events[] = {
    { "session_enqueued", ARGS_CREATION },      { "session_scheduled", ARGS_CREATION },
    { "session_preparing", ARGS_CREATION },     { "session_started", ARGS_CREATION },
    { "session_cancelled", ARGS_CREATION },     { "session_terminating", ARGS_END },
    { "session_terminated", ARGS_END },         { "session_success", ARGS_EXIT },
    { "session_failure", ARGS_EXIT },           { "kernel_preparing", ARGS_KERNEL_CREATION },
    { "kernel_pulling", ARGS_KERNEL_CREATION }, { "kernel_creating", ARGS_KERNEL_CREATION },
    { "kernel_started", ARGS_KERNEL_CREATION }, { "kernel_cancelled", ARGS_KERNEL_CREATION },
    { "kernel_terminating", ARGS_EXIT },        { "kernel_terminated", ARGS_EXIT },
    { "execution_started", ARGS_ID },           { "execution_finished", ARGS_ID },
    { "execution_timeout", ARGS_ID },
};

static void redis_event_add_args(const struct core_event *event, enum event_args args,
                                 struct strbuf *out)
{
    static const size_t counts[] = { [ARGS_CREATION] = 3,
                                     [ARGS_KERNEL_CREATION] = 4,
                                     [ARGS_END] = 2,
                                     [ARGS_EXIT] = 3,
                                     [ARGS_ID] = 1 };
    char id[UUID_TEXT_MAX];

    (void)uuid_format(event->kernel ? &event->kernel->id : &event->session->id, id);
    redis_msgpack_list(out, counts[args]);
    redis_msgpack_text(out, id, strlen(id));
    if (args == ARGS_ID)
        return;
    if (args == ARGS_CREATION || args == ARGS_KERNEL_CREATION)
        redis_msgpack_text(out, "", 0); /* who asked for the session learns that from the reply */
    redis_msgpack_text(out, event->reason, strlen(event->reason));
    if (args == ARGS_KERNEL_CREATION)
        redis_msgpack_map(out, 0);
    if (args == ARGS_EXIT)
        redis_msgpack_int(out, event->has_exit ? event->exit_code : -1);
}

void redis_events_publish(void *data, const struct core_event *event)
{
    struct redis_state *redis = data;
    AQ_CLEANUP(strbuf_donep) struct strbuf args = STRBUF_INIT;
    struct redis_command command = REDIS_COMMAND_INIT;
    const char *agent = event->kernel ? event->kernel->agent_id : NULL;
    size_t i = 0;

    while (i < AQ_COUNT(redis_events) && strcmp(redis_events[i].name, event->name) != 0)
        i++;
    if (i == AQ_COUNT(redis_events))
        return;
    redis_event_add_args(event, redis_events[i].args, &args);
    redis_command_adds(&command, "XADD");
    redis_command_adds(&command, STREAM);
    redis_command_adds(&command, "MAXLEN");
    redis_command_adds(&command, "~");
    redis_command_adds(&command, STREAM_MAX);
    redis_command_adds(&command, "*");
    redis_command_adds(&command, "name");
    redis_command_adds(&command, event->name);
    redis_command_adds(&command, "source");
    redis_command_adds(&command, agent ? agent : "manager");
    redis_command_adds(&command, "args");
    redis_command_add(&command, args.data, args.len);
    redis_client_send(redis->client, REDIS_DB_STREAM, &command, NULL, NULL);
}
