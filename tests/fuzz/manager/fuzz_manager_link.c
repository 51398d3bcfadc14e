/* SPDX-License-Identifier: Apache-2.0 */
/* A whole conversation of an agent that lies, with a real core behind a real link, beside an
 * honest agent whose sessions nothing may touch.
 *
 * The input is text. A line that begins with
 *   +   opens a connection and says the rest of the line
 *   =   says it as the next reliable message, and acknowledges all that came
 *   ~   says it as a transient message
 *   !   says it with the byte that follows as number and the next as acknowledgement
 *   -   ends the connection
 *   >   lets a second pass
 * and any other is given to the connection as it is. In what is said @3 is the id of a kernel,
 * $3 of its session (0 to 3 are the honest agent's, 4 to 7 the liar's), & the liar's
 * incarnation and ^ the manager's. The core is kept from one input to the next: it would take
 * ten times as long to make one. Each input begins with a liar that has joined again and has
 * four sessions that run.
 */
#include <stdint.h>
#include <string.h>

#include "manager/world.h"

#include "link/server_internal.h"

#define HONEST "i-001"
#define LIAR "i-666"
#define SESSIONS 8 /* half of them are the liar's */
#define LINES_MAX 64
#define AUDIT_EVERY 256

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct victim {
    enum session_status status;
    enum fact fact;
    uint32_t version;
    bool is_pulling, has_alloc, has_ports, has_error, has_violations;
};

static struct scene {
    unsigned inputs;
    struct sent commands[SESSIONS];
    struct victim victims[SESSIONS / 2];
    size_t told; /* events about victims */
    size_t types;
    struct uuid incarnation; /* the liar's */
    struct stream *stream;   /* its newest connection */
    bool is_guest;           /* which has not greeted yet */
    struct strbuf out;       /* what the manager said */
    uint64_t seq, heard;
} scene;

static void must(bool is_so)
{
    if (!is_so)
        __builtin_trap();
}

/* ---- the liar's connection ---- */

static void on_first_message(void *data, uint64_t seq, const struct message *msg)
{
    struct channel *channel = *(struct channel **)data;

    (void)seq;
    scene.is_guest = false;
    /* as server.c, where the name has to be that of the certificate */
    if (msg->type == MSG_HELLO && strcmp(msg->hello.agent_id, LIAR) == 0)
        server_agents_greet(world.core->link, channel, &msg->hello);
    else
        channel_close(channel);
}

static void on_guest_end(void *data, const char *why)
{
    (void)why;
    scene.is_guest = false;
    channel_close(*(struct channel **)data);
}

static bool is_open(void)
{
    return scene.stream && (scene.is_guest || link_server_is_connected(world.core->link, LIAR));
}

static void open_connection(void)
{
    static const struct channel_ops ops = { .on_message = on_first_message,
                                            .on_end = on_guest_end };
    static const struct stream_ops no_ops = { .on_open = NULL };
    static struct channel *channel;

    if (scene.is_guest) /* one at a time */
        channel_close(channel);
    strbuf_clear(&scene.out); /* of the one before */
    scene.seq = scene.heard = 0;
    scene.stream = stream_memory(&world.loop, &scene.out, &no_ops, NULL);
    scene.is_guest = true;
    channel = channel_new(&world.loop, scene.stream, &ops, &channel);
}

/* What the manager has said: its numbers, for acknowledgements. */
static void hear(void)
{
    struct link_frame frame;
    size_t used = 0;
    ssize_t n;

    while ((n = frame_read(scene.out.data + used, scene.out.len - used, LINK_FRAME_MAX, &frame))
           > 0) {
        scene.heard = AQ_MAX(scene.heard, frame.seq);
        used += (size_t)n;
    }
    must(n == 0);
    strbuf_consume(&scene.out, used);
}

static void feed(const char *bytes, size_t len)
{
    if (is_open())
        stream_memory_feed(scene.stream, bytes, len);
    settle();
    hear();
}

static void say_frame(const struct strbuf *body, uint64_t seq, uint64_t ack)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf frame = STRBUF_INIT;
    unsigned char head[FRAME_HEAD_BYTES];

    frame_write_head(head, seq, ack, body->len);
    strbuf_add(&frame, (const char *)head, sizeof(head));
    strbuf_add(&frame, body->data, body->len);
    must(strbuf_ok(&frame));
    feed(frame.data, frame.len);
}

/* ---- the lines ---- */

static void expand(const char *line, size_t len, struct strbuf *out)
{
    char id[UUID_TEXT_MAX];

    for (size_t i = 0; i < len; i++) {
        bool has_number = i + 1 < len && line[i + 1] >= '0' && line[i + 1] < '0' + SESSIONS;
        const struct sent *command = has_number ? &scene.commands[line[i + 1] - '0'] : NULL;

        if (line[i] == '&')
            strbuf_adds(out, uuid_format(&scene.incarnation, id));
        else if (line[i] == '^')
            strbuf_adds(out, uuid_format(&world.core->link->conf.incarnation, id));
        else if (command && (line[i] == '@' || line[i] == '$'))
            strbuf_adds(
                out,
                uuid_format(line[i++] == '@' ? &command->kernel_id : &command->session_id, id));
        else
            strbuf_addc(out, line[i]);
    }
    must(strbuf_ok(out));
}

static void honest_beats(void)
{
    struct msg_kernel_status reports[SESSIONS / 2];

    for (size_t i = 0; i < SESSIONS / 2; i++)
        reports[i] = kernel_report(&scene.commands[i], MSG_KERNEL_RUNNING);
    agent_beats(HONEST, reports, SESSIONS / 2);
}

static void run_line(const char *line, size_t len)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf body = STRBUF_INIT;
    char kind = len ? line[0] : '\0';
    size_t skip = kind == '!' && len >= 3 ? 3 : 1;

    if (len)
        expand(line + skip, len - skip, &body);
    if (kind == '+')
        open_connection();
    if (kind == '+' || kind == '~') {
        say_frame(&body, 0, scene.heard);
    } else if (kind == '=') {
        say_frame(&body, ++scene.seq, scene.heard);
    } else if (kind == '!' && skip == 3) {
        say_frame(&body, (uint8_t)line[1], (uint8_t)line[2]);
    } else if (kind == '-' && is_open()) {
        stream_memory_end(scene.stream);
        settle();
    } else if (kind == '>') {
        honest_beats();
        pass(USEC_PER_SEC);
        hear();
    } else if (kind != '-') {
        feed(line, len);
    }
}

/* ---- the scene ---- */

static int send_to(struct core *core, const char *agent_id, const struct message *msg,
                   struct aq_error *err)
{
    if (msg->type == MSG_KERNEL_CREATE && world.sent_count < AQ_COUNT(world.sent) - 1)
        (void)keep_sent(core, agent_id, msg, err);
    return strcmp(agent_id, LIAR) == 0 ? link_server_send(core->link, agent_id, msg, err) : 0;
}

static void on_event(void *data, const struct core_event *event)
{
    (void)data;
    for (size_t i = 0; event->session && i < SESSIONS / 2; i++)
        scene.told += uuid_equals(&event->session->id, &scene.commands[i].session_id);
}

static struct victim look_at(const struct sent *command)
{
    const struct kernel *k = core_find_kernel(world.core, &command->kernel_id);
    const struct kernel_entry *f = k ? &session_entry_of(k->session)->kernels[k->rank] : NULL;

    must(f != NULL);
    return (struct victim){ .status = k->session->status,
                            .fact = f->fact,
                            .version = k->session->version,
                            .is_pulling = f->is_pulling,
                            .has_alloc = f->alloc,
                            .has_ports = f->service_ports,
                            .has_error = f->error,
                            .has_violations = f->limit_violations };
}

static void check_victims(void)
{
    for (size_t i = 0; i < SESSIONS / 2; i++) {
        struct victim now = look_at(&scene.commands[i]);
        const struct victim *then = &scene.victims[i];

        must(now.status == then->status && now.fact == then->fact && now.version == then->version
             && now.is_pulling == then->is_pulling && now.has_alloc == then->has_alloc
             && now.has_ports == then->has_ports && now.has_error == then->has_error
             && now.has_violations == then->has_violations);
    }
    must(scene.told == 0);
}

/* Session i runs on that agent; of an image that nobody can have lied about. */
static void begin_session(size_t i, const char *agent_id)
{
    static unsigned number;
    char name[24];
    const struct session_request req = { .name = name,
                                         .type = SESSION_BATCH,
                                         .spec.image = name,
                                         .spec.command = "true",
                                         .access_key = USER_KEY,
                                         .priority = -1 };
    struct sent *command;

    world.sent_count = 0;
    (void)snprintf(name, sizeof(name), "s-%u", number++);
    must(create(&req).r == 0);
    command = find_sent(MSG_KERNEL_CREATE, 0);
    must(command && strcmp(command->agent_id, agent_id) == 0);
    scene.commands[i] = *command;
    agent_reports(command, MSG_KERNEL_RUNNING);
}

static void remove_folder(void)
{
    (void)fs_remove_tree(AT_FDCWD, world.dir, NULL);
}

/* Not within the time of the first input: making a database takes seconds on a busy machine. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    (void)world_begin(NULL);
    (void)atexit(remove_folder);
    close_core();
    world.conf.link_host = "127.0.0.1";
    open_core();
    strbuf_init(&scene.out);
    agent_comes(HONEST, FOUR_CPUS);
    for (size_t i = 0; i < SESSIONS / 2; i++) {
        begin_session(i, HONEST);
        scene.victims[i] = look_at(&scene.commands[i]);
    }
    world.core->send = send_to;
    must(core_subscribe(world.core, NULL, on_event, NULL) != NULL);
    scene.types = slot_types_count(core_slot_types(world.core));
    return 0;
}

static bool is_running(const struct sent *command)
{
    const struct session *s = core_find_session(world.core, &command->session_id);

    return s && s->status == SESSION_RUNNING;
}

/* What an honest agent would say, that has the liar's sessions if they run. */
static void liar_comes(void)
{
    static const char hello[] = "+{\"type\":\"hello\",\"protocol_min\":1,\"protocol_max\":1,"
                                "\"agent_id\":\"" LIAR "\",\"incarnation\":\"&\",\"version\":\"1\","
                                "\"architecture\":\"x86_64\",\"slots\":" FOUR_CPUS "}";
    AQ_CLEANUP(strbuf_donep) struct strbuf beat = STRBUF_INIT;
    const char *comma = "";

    strbuf_adds(&beat, "~{\"type\":\"heartbeat\",\"incarnation\":\"&\",\"seq\":1,"
                       "\"slots\":" FOUR_CPUS ",\"devices\":[],\"kernels\":[");
    for (size_t i = SESSIONS / 2; i < SESSIONS; i++) {
        if (!scene.inputs || !is_running(&scene.commands[i]))
            continue;
        strbuf_addf(&beat, "%s{\"kernel_id\":\"@%zu\",\"attempt\":1,\"state\":\"RUNNING\"}", comma,
                    i);
        comma = ",";
    }
    strbuf_adds(&beat, "]}");
    must(strbuf_ok(&beat));
    scene.incarnation = uuid_random();
    run_line(hello, sizeof(hello) - 1);
    run_line(beat.data, beat.len);
    for (size_t i = SESSIONS / 2; i < SESSIONS; i++) {
        struct sent *command = &scene.commands[i];

        if (scene.inputs && core_find_session(world.core, &command->session_id)) {
            if (is_running(command))
                continue;
            (void)terminate(&command->session_id, true);
            agent_reports(command, MSG_KERNEL_TERMINATED);
        }
        begin_session(i, LIAR);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *line = (const char *)data, *end = line + size, *next;

    liar_comes();
    scene.inputs++;
    for (unsigned i = 0; i < LINES_MAX && line < end; i++, line = next + 1) {
        next = memchr(line, '\n', (size_t)(end - line));
        next = next ? next : end;
        run_line(line, (size_t)(next - line));
        if (next == end)
            break;
    }
    check_victims();
    must(world.core->agent_count == 2);
    must(slot_types_count(core_slot_types(world.core)) <= scene.types + 64);
    must(world.core->statistics.kinds.count <= 512);
    if (scene.inputs % AUDIT_EVERY == 1)
        assert_clean();
    return 0;
}
