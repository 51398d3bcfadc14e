/* SPDX-License-Identifier: Apache-2.0 */
/* node.c - one agent of the swarm: its offer, its connection, its heartbeats */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "swarm.h"

#define HEARTBEAT_USEC (3 * USEC_PER_SEC)
#define MEM_BYTES (INT64_C(1) << 40)
#define GPU_QUANTUM (AMOUNT_ONE / 100)

/* ---- what it offers ---- */

static void node_write_device(struct jsonw *w, const char *id, const char *slot, const char *amount)
{
    jsonw_object_begin(w);
    jsonw_member_str(w, "id", id);
    jsonw_member_str(w, "slot", slot);
    jsonw_member_str(w, "amount", amount);
    if (strcmp(slot, "cuda.shares") == 0)
        jsonw_member_str(w, "quantum", "0.01");
    jsonw_object_end(w);
}

static void node_describe(struct node *node)
{
    const struct swarm_options *options = &node->swarm->options;
    struct strbuf slots = STRBUF_INIT, devices = STRBUF_INIT;
    struct jsonw w = jsonw_make(&devices);
    char id[32], mem[AMOUNT_TEXT_MAX];

    slot_amount_format(MEM_BYTES, SLOT_BYTES, mem);
    strbuf_addf(&slots, "{\"cpu\":[\"count\",\"%zu\"],\"mem\":[\"bytes\",\"%s\"]", options->cores,
                mem);
    if (options->gpus)
        strbuf_addf(&slots, ",\"cuda.shares\":[\"count\",\"%zu\"]", options->gpus);
    strbuf_adds(&slots, "}");
    jsonw_array_begin(&w);
    for (size_t i = 0; i < options->cores; i++) {
        (void)snprintf(id, sizeof(id), "%zu", i);
        node_write_device(&w, id, "cpu", "1");
    }
    node_write_device(&w, "root", "mem", mem);
    for (size_t i = 0; i < options->gpus; i++) {
        (void)snprintf(id, sizeof(id), "gpu-%zu", i);
        node_write_device(&w, id, "cuda.shares", "1");
    }
    jsonw_array_end(&w);
    node->slots = strbuf_steal(&slots);
    node->devices = strbuf_steal(&devices);
}

static int node_make_map(struct node *node, struct aq_error *err)
{
    static const struct alloc_slot slots[] = {
        { .name = "cpu", .type = SLOT_COUNT, .strategy = ALLOC_EVENLY },
        { .name = "mem", .type = SLOT_BYTES, .strategy = ALLOC_FILL },
        { .name = "cuda.shares",
          .type = SLOT_COUNT,
          .strategy = ALLOC_EVENLY,
          .quantum = GPU_QUANTUM },
    };
    size_t cores = node->swarm->options.cores, gpus = node->swarm->options.gpus;
    size_t count = cores + 1 + gpus;
    AQ_CLEANUP(aq_freep) struct alloc_device *devices = aq_alloc_array(count, sizeof(*devices));
    AQ_CLEANUP(aq_freep) char(*ids)[32] = aq_alloc_array(count, sizeof(*ids));

    for (size_t i = 0; i < count; i++) {
        bool is_core = i < cores, is_memory = i == cores;

        if (is_memory)
            (void)snprintf(ids[i], sizeof(ids[i]), "root");
        else
            (void)snprintf(ids[i], sizeof(ids[i]), is_core ? "%zu" : "gpu-%zu",
                           is_core ? i : i - cores - 1);
        devices[i] = (struct alloc_device){
            .id = ids[i],
            .slot_name = slots[is_core     ? 0
                               : is_memory ? 1
                                           : 2]
                             .name,
            .capacity = is_memory ? MEM_BYTES : AMOUNT_ONE,
            .numa_node = -1,
        };
    }
    return alloc_map_new(
        &(struct alloc_config){
            .slots = slots, .slot_count = gpus ? 3 : 2, .devices = devices, .device_count = count },
        &node->map, err);
}

/* ---- what it says ---- */

void node_send(struct node *node, const struct message *msg)
{
    if (node->link)
        (void)link_client_send(node->link, msg, NULL);
}

static void node_send_heartbeat(struct node *node)
{
    size_t count = node->kernels.count;
    AQ_CLEANUP(aq_freep)
    struct msg_kernel_status *kernels = aq_alloc_array(count + 1, sizeof(*kernels));
    const struct message msg = {
        .type = MSG_HEARTBEAT,
        .heartbeat = { .incarnation = node->incarnation,
                       .seq = ++node->heartbeat_seq,
                       .received_seq = (int64_t)node->last_seq,
                       .at_usec = clock_realtime_usec(),
                       .uptime_usec = clock_boottime_usec(),
                       .is_draining = node->is_draining,
                       .slots = node->slots,
                       .kernels = kernels,
                       .kernel_count = count },
    };

    for (size_t i = 0; i < count; i++)
        swarm_kernel_describe(node->kernels.entries[i].value, &kernels[i]);
    node_send(node, &msg);
}

static void node_on_heartbeat(uv_timer_t *timer)
{
    struct node *node = timer->data;

    if (link_client_is_connected(node->link))
        node_send_heartbeat(node);
}

/* There are neither images nor logs nor terminals nor a service of the machine. */
static void node_refuse_image(struct node *node, const struct msg_image_command *command)
{
    const struct message msg = { .type = MSG_IMAGE_STATUS,
                                 .image_status = { .job_id = command->job_id,
                                                   .image = command->image,
                                                   .state = "failed",
                                                   .error_kind = "no-containers",
                                                   .error_text = "the swarm has no images" } };

    node_send(node, &msg);
}

static void node_refuse_stream(struct node *node, const struct msg_stream_open *open)
{
    const struct message msg = { .type = MSG_STREAM_REFUSED,
                                 .stream_refused = { .stream_id = open->stream_id,
                                                     .kind = "not-found",
                                                     .text = "the swarm has no streams" } };

    node_send(node, &msg);
}

static void node_refuse_service(struct node *node, const struct msg_service_command *command)
{
    const struct message msg = { .type = MSG_SERVICE_STATUS,
                                 .service_status = { .job_id = command->job_id,
                                                     .error_text = "the swarm is no service" } };

    node_send(node, &msg);
}

/* ---- the link's callbacks ---- */

static void node_on_greet(void *data, struct msg_hello *hello)
{
    struct node *node = data;

    hello->started_usec = clock_realtime_usec();
    hello->architecture = "x86_64";
    hello->hostname = node->id;
    hello->slots = node->slots;
    hello->devices = node->devices;
    hello->runtime = "process";
}

static void node_on_connected(void *data, const struct msg_welcome *welcome)
{
    struct node *node = data;
    int64_t wanted = welcome->heartbeat_usec > 0 ? welcome->heartbeat_usec : HEARTBEAT_USEC;
    uint64_t msec = (uint64_t)(wanted / USEC_PER_MSEC);

    node->swarm->counts.welcomes++;
    node->swarm->counts.connected += !node->is_connected;
    node->is_connected = true;
    node_send_heartbeat(node);
    (void)uv_timer_start(&node->heartbeat, node_on_heartbeat, msec, msec);
}

static int node_on_epoch(void *data, int64_t epoch)
{
    struct node *node = data;

    node->epoch = epoch;
    return 0;
}

static void node_on_message(void *data, uint64_t seq, const struct message *msg)
{
    struct node *node = data;

    switch (msg->type) {
    case MSG_HEARTBEAT_REPLY:
        swarm_kernel_take_leases(node, &msg->heartbeat_reply);
        break;
    case MSG_KERNEL_CREATE:
        swarm_kernel_on_create(node, &msg->kernel_create);
        break;
    case MSG_KERNEL_DESTROY:
        swarm_kernel_on_destroy(node, &msg->kernel_destroy);
        break;
    case MSG_KERNEL_RESTART:
        swarm_kernel_on_restart(node, &msg->kernel_restart);
        break;
    case MSG_KERNEL_RESIZE:
        swarm_kernel_on_resize(node, &msg->kernel_resize);
        break;
    case MSG_KERNEL_FORGET:
        swarm_kernel_on_forget(node, &msg->kernel_forget);
        break;
    case MSG_KERNEL_RELEASE:
        swarm_kernel_on_release(node, &msg->kernel_release);
        break;
    case MSG_KERNEL_DESCRIBE:
        swarm_kernel_on_describe(node, &msg->kernel_describe);
        break;
    case MSG_DRAIN:
        node->is_draining = msg->drain.on;
        break;
    case MSG_IMAGE_COMMAND:
        node_refuse_image(node, &msg->image_command);
        break;
    case MSG_SERVICE_COMMAND:
        node_refuse_service(node, &msg->service_command);
        break;
    case MSG_STREAM_OPEN:
        node_refuse_stream(node, &msg->stream_open);
        break;
    default:
        break; /* networks, probes and pages, which no node of the swarm has */
    }
    if (seq) {
        node->last_seq = seq;
        link_client_ack(node->link, seq);
    }
}

static void node_on_disconnected(void *data, const char *why)
{
    struct node *node = data;

    (void)why;
    (void)uv_timer_stop(&node->heartbeat);
    node->swarm->counts.losses += node->is_connected;
    node->swarm->counts.connected -= node->is_connected;
    node->is_connected = false;
}

static void node_on_refused(void *data, const char *kind, const char *text)
{
    struct node *node = data;

    node_on_disconnected(node, text);
    node->swarm->counts.refusals++;
    (void)snprintf(node->swarm->refusal, sizeof(node->swarm->refusal), "%s: %s: %s", node->id, kind,
                   text);
}

static int node_connect(struct node *node, struct aq_error *err)
{
    static const struct link_client_ops ops = {
        .on_greet = node_on_greet,
        .on_epoch = node_on_epoch,
        .on_connected = node_on_connected,
        .on_message = node_on_message,
        .on_disconnected = node_on_disconnected,
        .on_refused = node_on_refused,
    };
    const struct swarm_options *options = &node->swarm->options;

    node->incarnation = uuid_random();
    node->last_seq = 0;
    return link_client_new(&(struct link_client_conf){ .loop = &node->swarm->loop,
                                                       .addresses = options->managers,
                                                       .address_count = options->manager_count,
                                                       .epoch = node->epoch,
                                                       .ca = node->swarm->ca_cert,
                                                       .cert = node->cert,
                                                       .key = node->key,
                                                       .agent_id = node->id,
                                                       .incarnation = node->incarnation },
                           &ops, node, &node->link, err);
}

/* ---- life ---- */

int node_init(struct node *node, struct swarm *swarm, size_t number, struct pki_ca *ca,
              struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *csr = NULL;
    int r;

    node->swarm = swarm;
    node->heartbeat.data = node;
    (void)uv_timer_init(&swarm->loop, &node->heartbeat);
    (void)snprintf(node->id, sizeof(node->id), "%s%zu", swarm->options.prefix, number);
    node_describe(node);
    r = node_make_map(node, err);
    if (r == 0)
        r = pki_request_new(node->id, &node->key, &csr, err);
    if (r == 0)
        r = pki_issue_agent(ca, csr, node->id, PKI_AGENT_DAYS, &node->cert, NULL, err);
    return r < 0 ? r : node_connect(node, err);
}

int node_restart(struct node *node, struct aq_error *err)
{
    (void)uv_timer_stop(&node->heartbeat);
    link_client_free(AQ_TAKE(node->link));
    node->swarm->counts.connected -= node->is_connected;
    node->is_connected = false;
    node->heartbeat_seq = 0;
    return node_connect(node, err);
}

void node_done(struct node *node)
{
    link_client_free(AQ_TAKE(node->link));
    uv_close((uv_handle_t *)&node->heartbeat, NULL);
    swarm_kernel_drop_all(node);
    map_done(&node->kernels);
    alloc_map_free(node->map);
    free(node->cert);
    free(node->key);
    free(node->slots);
    free(node->devices);
}
