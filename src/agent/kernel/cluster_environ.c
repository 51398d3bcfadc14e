/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_environ.c - variables by which programs that train together find each other
 *
 * Ports are the frameworks' usual ones: nothing else listens in a kernel's network, and every
 * kernel has addresses of its own. With the host network they are those that the manager chose.
 */
#include "agent/kernel/cluster_environ.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/jsonw.h"
#include "model/session.h"

#define TORCH_PORT 29500
#define TORCHRUN_PORT 29400
/* torchrun counts each leaving kernel as a failure. */
#define TORCHRUN_RESTARTS "100"
#define TENSORFLOW_PORT 2222
#define JAX_PORT 1234

struct cluster_variables {
    struct arena *arena;
    struct text_pair *items;
    size_t count;
};

static void cluster_environ_set(struct cluster_variables *v, const char *name, const char *value)
{
    v->items[v->count++] = (struct text_pair){ name, value };
}

static void cluster_environ_set_number(struct cluster_variables *v, const char *name,
                                       int64_t number)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%" PRId64, number);
    cluster_environ_set(v, name, arena_strdup(v->arena, text));
}

/* The port of the kernel with that name and for that purpose. */
static int64_t cluster_environ_port(const struct cluster_place *place, const char *host, size_t len,
                                    enum cluster_host_port which, int64_t usual)
{
    char hostname[KERNEL_HOSTNAME_MAX];
    const struct cluster_network_kernel *kernel;

    if (!place->host)
        return usual;
    (void)snprintf(hostname, sizeof(hostname), "%.*s", (int)len, host);
    kernel = cluster_network_find(place->host, hostname);
    return kernel ? kernel->port + which : usual;
}

/* The first kernel's name, with ":PORT" unless 'port' is 0. */
static void cluster_environ_set_first(struct cluster_variables *v, const char *name,
                                      const struct kernel_spec *spec, int64_t port)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    strbuf_add(&text, spec->hosts, strcspn(spec->hosts, ","));
    if (port)
        strbuf_addf(&text, ":%" PRId64, port);
    cluster_environ_set(v, name, arena_strdup(v->arena, text.data));
}

/* ---- TensorFlow ---- */

enum tf_task { TF_CHIEF, TF_WORKER, TF_PS, TF_EVALUATOR, TF_TASKS };
static const char *const tf_tasks[] = { "chief", "worker", "ps", "evaluator" };

/* The length of a host's role: "sub" of "sub12". */
static size_t cluster_environ_role_len(const char *host, size_t len)
{
    while (len > 0 && host[len - 1] >= '0' && host[len - 1] <= '9')
        len--;
    return len;
}

/* -1 for a role that TensorFlow does not know. */
static int cluster_environ_find_task(const char *host, size_t len)
{
    size_t role = cluster_environ_role_len(host, len);

    for (int i = 0; i < TF_TASKS; i++)
        if (strlen(tf_tasks[i]) == role && memcmp(tf_tasks[i], host, role) == 0)
            return i;
    return -1;
}

/* The TensorFlow task of a kernel. 'has_roles': some role of the session is one of TensorFlow's. */
static enum tf_task cluster_environ_task(const char *host, size_t len, bool has_roles)
{
    int task = cluster_environ_find_task(host, len);

    if (task >= 0)
        return (enum tf_task)task;
    return has_roles && cluster_environ_role_len(host, len) == 4 && memcmp(host, "main", 4) == 0
               ? TF_CHIEF
               : TF_WORKER;
}

/* State of writing one TF_CONFIG. */
struct cluster_environ_tf {
    const struct kernel_spec *spec;
    const struct cluster_place *place;
    bool has_roles;    /* some role of the session is one of TensorFlow's */
    enum tf_task task; /* of the kernel itself */
    int64_t index;     /* of the kernel among those with its task */
    struct jsonw w;
};

/* Writes "worker": ["main1:2222", ...] with the kernels of this task. Nothing is written if there
 * are none, or for evaluators, which are not part of the cluster.
 */
static void cluster_environ_write_task(struct cluster_environ_tf *tf, enum tf_task task)
{
    const struct kernel_spec *spec = tf->spec;
    int64_t index = 0, rank = 0;

    for (const char *at = spec->hosts; *at; at += strcspn(at, ","), at += *at == ',', rank++) {
        size_t len = strcspn(at, ",");
        char address[KERNEL_HOSTNAME_MAX + 8];

        if (cluster_environ_task(at, len, tf->has_roles) != task)
            continue;
        if (rank == spec->rank) {
            tf->task = task;
            tf->index = index;
        }
        if (index++ == 0 && task != TF_EVALUATOR) {
            jsonw_key(&tf->w, tf_tasks[task]);
            jsonw_array_begin(&tf->w);
        }
        (void)snprintf(
            address, sizeof(address), "%.*s:%" PRId64, (int)len, at,
            cluster_environ_port(tf->place, at, len, CLUSTER_HOST_TENSORFLOW, TENSORFLOW_PORT));
        if (task != TF_EVALUATOR)
            jsonw_str(&tf->w, address);
    }
    if (index > 0 && task != TF_EVALUATOR)
        jsonw_array_end(&tf->w);
}

/* {"cluster": {"worker": ["main1:2222", ...]}, "task": {"type": "worker", "index": 0}} */
static const char *cluster_environ_make_tf(const struct kernel_spec *spec,
                                           const struct cluster_place *place, struct arena *arena)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct cluster_environ_tf tf = {
        .spec = spec, .place = place, .task = TF_WORKER, .w = jsonw_make(&out)
    };

    for (const char *at = spec->hosts; *at; at += strcspn(at, ","), at += *at == ',')
        tf.has_roles |= cluster_environ_find_task(at, strcspn(at, ",")) >= 0;
    jsonw_object_begin(&tf.w);
    jsonw_key(&tf.w, "cluster");
    jsonw_object_begin(&tf.w);
    for (int task = 0; task < TF_TASKS; task++)
        cluster_environ_write_task(&tf, (enum tf_task)task);
    jsonw_object_end(&tf.w);
    jsonw_key(&tf.w, "task");
    jsonw_object_begin(&tf.w);
    jsonw_member_str(&tf.w, "type", tf_tasks[tf.task]);
    jsonw_member_int(&tf.w, "index", tf.index);
    jsonw_object_end(&tf.w);
    jsonw_object_end(&tf.w);
    return arena_strdup(arena, out.data);
}

/* ---- how many ---- */

/* If the size of the session can change, only torchrun's variables are set, because torchrun agrees
 * on size and ranks at each change. Programs that read the others would wait for kernels that may
 * never start.
 */
static void cluster_environ_set_size(struct cluster_variables *v, const struct kernel_spec *spec)
{
    char range[48];

    if (spec->session.cluster_size_min == 0) {
        cluster_environ_set_number(v, "WORLD_SIZE", spec->cluster_size);
        cluster_environ_set_number(v, "JAX_NUM_PROCESSES", spec->cluster_size);
        cluster_environ_set_number(v, "PET_NNODES", spec->cluster_size);
        return;
    }
    (void)snprintf(range, sizeof(range), "%" PRId64 ":%" PRId64, spec->session.cluster_size_min,
                   spec->cluster_size);
    cluster_environ_set(v, "PET_NNODES", arena_strdup(v->arena, range));
    cluster_environ_set(v, "PET_MAX_RESTARTS", TORCHRUN_RESTARTS);
}

/* ---- all ---- */

static const char *const interfaces[] = { "NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME",
                                          "OMPI_MCA_btl_tcp_if_include",
                                          "OMPI_MCA_oob_tcp_if_include" };

static const char *const shells[] = { "OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent",
                                      "HYDRA_LAUNCHER_EXEC", "I_MPI_HYDRA_BOOTSTRAP_EXEC" };

/* Variables that contain names of other kernels. */
static void cluster_environ_set_network(struct cluster_variables *v, const struct kernel_spec *spec,
                                        const struct cluster_place *place)
{
    bool is_elastic = spec->session.cluster_size_min > 0;
    const char *first = spec->hosts;
    size_t len = strcspn(first, ",");

    cluster_environ_set_first(v, "MASTER_ADDR", spec, 0);
    cluster_environ_set_number(
        v, "MASTER_PORT", cluster_environ_port(place, first, len, CLUSTER_HOST_TORCH, TORCH_PORT));
    cluster_environ_set(v, "PET_RDZV_BACKEND", "c10d");
    cluster_environ_set_first(
        v, "PET_RDZV_ENDPOINT", spec,
        cluster_environ_port(place, first, len, CLUSTER_HOST_TORCHRUN, TORCHRUN_PORT));
    if (!is_elastic)
        cluster_environ_set(v, "TF_CONFIG", cluster_environ_make_tf(spec, place, v->arena));
    cluster_environ_set_first(v, "JAX_COORDINATOR_ADDRESS", spec,
                              cluster_environ_port(place, first, len, CLUSTER_HOST_JAX, JAX_PORT));
    for (size_t i = 0; place->interface[0] && i < AQ_COUNT(interfaces); i++)
        cluster_environ_set(v, interfaces[i], place->interface);
    if (place->host_file) {
        cluster_environ_set(v, "OMPI_MCA_orte_default_hostfile", place->host_file);
        cluster_environ_set(v, "PRTE_MCA_prte_default_hostfile", place->host_file);
    }
    if (place->machine_file) {
        cluster_environ_set(v, "HYDRA_HOST_FILE", place->machine_file);
        cluster_environ_set(v, "I_MPI_HYDRA_HOST_FILE", place->machine_file);
    }
    for (size_t i = 0; place->remote_shell && i < AQ_COUNT(shells); i++)
        cluster_environ_set(v, shells[i], place->remote_shell);
}

size_t cluster_environ_make(const struct kernel_spec *spec, const struct cluster_place *place,
                            struct arena *arena, struct text_pair ret[CLUSTER_VARIABLES_MAX])
{
    struct cluster_variables v = { .arena = arena, .items = ret };

    if (spec->cluster_size <= 1 || !spec->hosts)
        return 0;
    cluster_environ_set_size(&v, spec);
    cluster_environ_set_number(&v, "RANK", spec->rank);
    cluster_environ_set(&v, "LOCAL_RANK", "0");
    cluster_environ_set_number(&v, "NODE_RANK", spec->rank);
    cluster_environ_set_number(&v, "PET_NODE_RANK", spec->rank);
    cluster_environ_set_number(&v, "PET_NPROC_PER_NODE", place->devices > 0 ? place->devices : 1);
    cluster_environ_set(&v, "PET_RDZV_ID", spec->session_name ? spec->session_name : "session");
    cluster_environ_set_number(&v, "JAX_PROCESS_ID", spec->rank);
    if (place->interface)
        cluster_environ_set_network(&v, spec, place);
    return v.count;
}

/* Is this the first kernel that has its node's address? */
static bool cluster_environ_leads_node(const struct cluster_network *host, const char *name,
                                       size_t len)
{
    char hostname[KERNEL_HOSTNAME_MAX];
    const struct cluster_network_kernel *kernel;

    (void)snprintf(hostname, sizeof(hostname), "%.*s", (int)len, name);
    kernel = cluster_network_find(host, hostname);
    for (size_t i = 0; kernel && &host->kernels[i] != kernel; i++)
        if (strcmp(host->kernels[i].address, kernel->address) == 0)
            return false;
    return kernel != NULL;
}

/* A line for each kernel of 'spec', in the form of a file. */
static void cluster_environ_add_lines(const struct kernel_spec *spec,
                                      const struct cluster_network *host, const char *between,
                                      int64_t slots, struct strbuf *out)
{
    int64_t least = spec->session.cluster_size_min, count = 0;

    for (const char *at = spec->hosts; *at && (least == 0 || count < least); at += *at == ',') {
        size_t len = strcspn(at, ",");

        count++;
        if (!host || cluster_environ_leads_node(host, at, len))
            strbuf_addf(out, "%.*s%s%" PRId64 "\n", (int)len, at, between, slots);
        at += len;
    }
}

void cluster_environ_add_hosts(const struct kernel_spec *spec, const struct cluster_network *host,
                               int64_t slots, struct strbuf *out)
{
    cluster_environ_add_lines(spec, host, " slots=", slots, out);
}

void cluster_environ_add_machines(const struct kernel_spec *spec,
                                  const struct cluster_network *host, int64_t slots,
                                  struct strbuf *out)
{
    cluster_environ_add_lines(spec, host, ":", slots, out);
}
