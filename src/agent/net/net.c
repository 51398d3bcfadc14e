/* SPDX-License-Identifier: Apache-2.0 */
/* net.c - networks of kernels on this node */
#include "agent/net/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/net/net_internal.h"
#include "agent/net/nft.h"
#include "agent/net/forwarding.h"
#include "agent/net/endpoint_setup.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/memory.h"

/* One endpoint's work in the thread pool. */
struct net_job {
    uv_work_t work;
    struct net_endpoint *endpoint;
    struct endpoint_plan plan; /* to close: directory and link */
    bool finds_servers;
    struct aq_error err;
};

/* ---- endpoints ---- */

void net_endpoint_directory(const struct net_endpoint *e, char *path, size_t size)
{
    char id[UUID_TEXT_MAX];

    (void)snprintf(path, size, "%s/%s", e->net->directory.path, uuid_format(&e->kernel_id, id));
}

void net_endpoint_link(const struct net_endpoint *e, char name[IF_NAMESIZE])
{
    (void)snprintf(name, IF_NAMESIZE, "aq%s-%06x", e->net->directory.tag,
                   e->record.number & 0xffffffu);
}

void net_endpoint_fill_info(struct net_endpoint *e)
{
    char directory[NET_PATH_MAX - 16];
    struct net_info *info = &e->info;

    net_endpoint_directory(e, directory, sizeof(directory));
    net_endpoint_link(e, info->link);
    (void)snprintf(info->namespace_path, sizeof(info->namespace_path), "%s/ns", directory);
    (void)snprintf(info->hosts_path, sizeof(info->hosts_path), "%s/hosts", directory);
    (void)snprintf(info->resolv_path, sizeof(info->resolv_path), "%s/resolv.conf", directory);
    (void)snprintf(info->sys_path, sizeof(info->sys_path), "%s/sys", directory);
    (void)cluster_address_format(pool_address(&e->net->pool, e->record.number), info->address);
    memcpy(info->ports, e->record.ports, sizeof(info->ports));
    info->port_count = e->record.port_count;
}

const struct net_info *net_get_info(const struct net_endpoint *endpoint)
{
    return &endpoint->info;
}

static struct net_endpoint *net_find(const struct net *net, const struct uuid *kernel_id)
{
    LIST_FOREACH(it, &net->endpoints) {
        struct net_endpoint *e = LIST_ENTRY(it, struct net_endpoint, link);

        if (uuid_equals(&e->kernel_id, kernel_id))
            return e;
    }
    return NULL;
}

static void net_give_back(struct net_endpoint *e)
{
    for (size_t i = 0; i < e->record.port_count; i++)
        ports_give(&e->net->ports, e->record.ports[i].outside);
    pool_give(&e->net->pool, e->record.number);
}

static void net_endpoint_free(struct net_endpoint *e)
{
    list_remove(&e->link);
    free(e->cluster_hosts);
    free(e);
}

/* ---- jobs ---- */

static void net_job_free(struct net_job *job)
{
    endpoint_plan_done(&job->plan);
    free(job);
}

static struct net_job *net_job_new(struct net_endpoint *e)
{
    struct net_job *job = aq_alloc(sizeof(*job));

    job->work.data = job;
    job->endpoint = e;
    strbuf_init(&job->plan.record);
    strbuf_init(&job->plan.hosts);
    net_endpoint_directory(e, job->plan.directory, sizeof(job->plan.directory));
    net_endpoint_link(e, job->plan.link);
    return job;
}

static void net_job_start(struct net_job *job, uv_work_cb work, uv_after_work_cb after)
{
    struct net *net = job->endpoint->net;

    (void)uv_queue_work(net->loop, &job->work, work, after);
    net->jobs++;
}

/* ---- closing ---- */

static void net_end(struct net_endpoint *e, const struct aq_error *err)
{
    net_fn *fn = e->fn;
    void *data = e->data;
    bool is_freed = e->net->is_freed;

    net_give_back(e);
    net_endpoint_free(e);
    if (fn && !is_freed)
        fn(data, err);
}

static void net_on_close_work(uv_work_t *work)
{
    struct net_job *job = work->data;

    (void)endpoint_setup_remove(job->plan.directory, job->plan.link, &job->err);
}

static void net_on_closed(uv_work_t *work, int status)
{
    struct net_job *job = work->data;
    struct net *net = job->endpoint->net;

    (void)status;
    if (job->err.code)
        log_error("a network cannot be removed whole: %s", job->err.text);
    net_end(job->endpoint, job->err.code ? &job->err : NULL);
    net_job_free(job);
    net_job_ended(net);
}

static void net_start_closing(struct net_endpoint *e)
{
    e->state = ENDPOINT_CLOSING;
    net_job_start(net_job_new(e), net_on_close_work, net_on_closed);
}

/* Out of the table first, so that nothing is led to an address that is free. */
static void net_leave(struct net_endpoint *e)
{
    struct net *net = e->net;

    if (e->record.port_count == 0 && !e->record.has_peers) {
        net_start_closing(e);
        return;
    }
    e->state = ENDPOINT_UNLISTING;
    e->listed = ++net->wanted;
    net_table_update(net);
}

void net_close(struct net_endpoint *e, net_fn *fn, void *data)
{
    if (!e)
        return;
    e->is_closing = true;
    e->fn = fn;
    e->data = data;
    if (e->state == ENDPOINT_OPEN || e->state == ENDPOINT_FOUND || e->state == ENDPOINT_LISTING)
        net_leave(e);
    else if (e->state == ENDPOINT_FAILED)
        net_start_closing(e);
    /* else by net_on_opened() */
}

/* ---- opening ---- */

static void net_on_open_work(uv_work_t *work)
{
    struct net_job *job = work->data;

    if (job->finds_servers)
        dns_files_find_servers(&job->plan.servers);
    (void)endpoint_setup_create(&job->plan, &job->err);
}

static void net_tell_open(struct net_endpoint *e, const struct aq_error *err)
{
    e->state = err ? ENDPOINT_FAILED : ENDPOINT_OPEN;
    if (!e->net->is_freed)
        e->fn(e->data, err);
}

/* The first of a session learns of it when the second comes. */
static void net_mark_mates(struct net_endpoint *e)
{
    LIST_FOREACH(it, &e->net->endpoints) {
        struct net_endpoint *other = LIST_ENTRY(it, struct net_endpoint, link);

        if (other != e && uuid_equals(&other->record.session_id, &e->record.session_id))
            other->record.has_peers = e->record.has_peers = true;
    }
}

static void net_join(struct net_endpoint *e)
{
    struct net *net = e->net;

    e->state = ENDPOINT_LISTING;
    net_mark_mates(e);
    if (e->record.port_count == 0 && !e->record.has_peers) {
        net_tell_open(e, NULL);
        return;
    }
    e->listed = ++net->wanted;
    net_table_update(net);
}

void net_endpoint_listed(struct net_endpoint *e, const struct aq_error *err)
{
    if (e->state == ENDPOINT_UNLISTING)
        net_start_closing(e);
    else
        net_tell_open(e, err);
}

static void net_take_servers(struct net *net, const struct dns_servers *servers)
{
    if (net->has_own_servers || dns_files_equal(&net->servers, servers))
        return;
    net->servers = *servers;
    net->wanted++;
    net_table_update(net);
}

static void net_on_opened(uv_work_t *work, int status)
{
    struct net_job *job = work->data;
    struct net_endpoint *e = job->endpoint;
    struct net *net = e->net;

    (void)status;
    if (job->finds_servers)
        net_take_servers(net, &job->plan.servers);
    if (e->is_closing)
        net_start_closing(e);
    else if (job->err.code)
        net_tell_open(e, &job->err);
    else
        net_join(e);
    net_job_free(job);
    net_job_ended(net);
}

static bool net_is_port_free(uint16_t port)
{
    const struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
    AQ_CLEANUP(aq_closep) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int yes = 1;

    if (fd < 0)
        return false;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    return bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0;
}

/* Address and ports, all or none. */
static int net_take(struct net *net, const struct net_request *request, struct endpoint_record *ret,
                    struct aq_error *err)
{
    struct endpoint_record record = { .session_id = request->session_id };
    int r;

    if (request->port_count > NET_PORTS_MAX)
        return aq_fail_field(err, EINVAL, "ports", "a kernel can publish %d ports at most",
                             NET_PORTS_MAX);
    if (!request->hostname[0] || strlen(request->hostname) > NET_HOSTNAME_MAX
        || request->hostname[strcspn(request->hostname, " \t\r\n#")] != '\0')
        return aq_fail_field(err, EINVAL, "hostname", "'%.70s' is no host name", request->hostname);
    (void)snprintf(record.hostname, sizeof(record.hostname), "%s", request->hostname);
    r = pool_take(&net->pool, &record.number, err);
    if (r < 0)
        return r;
    for (size_t i = 0; r == 0 && i < request->port_count; i++) {
        struct net_port port = { .inside = request->ports[i] };

        r = ports_take(&net->ports, net_is_port_free, &port.outside, err);
        if (r == 0)
            record.ports[record.port_count++] = port;
    }
    if (r < 0) {
        for (size_t i = 0; i < record.port_count; i++)
            ports_give(&net->ports, record.ports[i].outside);
        pool_give(&net->pool, record.number);
        return r;
    }
    *ret = record;
    return 0;
}

static void net_start_opening(struct net_endpoint *e, bool is_closed)
{
    struct net_job *job = net_job_new(e);

    job->plan.address = pool_address(&e->net->pool, e->record.number);
    job->plan.gateway = pool_address(&e->net->pool, POOL_GATEWAY);
    job->plan.mtu = e->net->mtu;
    job->plan.servers = e->net->servers;
    for (size_t i = 0; i < e->record.port_count; i++)
        job->plan.ports[job->plan.port_count++] = e->record.ports[i].inside;
    job->plan.is_closed = is_closed;
    job->finds_servers = !e->net->has_own_servers;
    endpoint_record_add(&job->plan.record, &e->record);
    net_hosts_add(e, &job->plan.hosts);
    net_job_start(job, net_on_open_work, net_on_opened);
}

int net_open(struct net *net, const struct net_request *request, net_fn *fn, void *data,
             struct net_endpoint **ret, struct aq_error *err)
{
    struct net_endpoint *e;
    int r;

    if (net_find(net, &request->kernel_id))
        return aq_fail(err, EEXIST, "this kernel has a network already");
    e = aq_alloc(sizeof(*e));
    *e = (struct net_endpoint){ .net = net,
                                .state = ENDPOINT_OPENING,
                                .fn = fn,
                                .data = data,
                                .kernel_id = request->kernel_id };
    r = net_take(net, request, &e->record, err);
    if (r < 0) {
        free(e);
        return r;
    }
    list_add(&net->endpoints, &e->link);
    net_endpoint_fill_info(e);
    net_start_opening(e, request->is_closed);
    *ret = e;
    return 0;
}

/* ---- after a start ---- */

int net_adopt(struct net *net, const struct uuid *kernel_id, struct net_endpoint **ret,
              struct aq_error *err)
{
    struct net_endpoint *e = net_find(net, kernel_id);

    if (!e || e->state != ENDPOINT_FOUND)
        return aq_fail(err, ENOENT, "this kernel has no network on this node");
    e->state = ENDPOINT_OPEN;
    *ret = e;
    return 0;
}

void net_sweep(struct net *net)
{
    LIST_FOREACH(it, &net->endpoints) {
        struct net_endpoint *e = LIST_ENTRY(it, struct net_endpoint, link);

        if (e->state == ENDPOINT_FOUND)
            net_close(e, NULL, NULL);
    }
}

int net_new(uv_loop_t *loop, const struct net_settings *settings, struct net **ret,
            struct aq_error *err)
{
    struct net *net = aq_alloc(sizeof(*net));
    int r;

    net->loop = loop;
    net->directory = (struct net_directory)NET_DIRECTORY_CLOSED;
    strbuf_init(&net->written);
    list_init(&net->endpoints);
    r = net_start(net, settings, err);
    if (r < 0)
        net_free(net);
    else
        *ret = net;
    return r;
}

/* ---- the end ---- */

static void net_remove_all(struct net *net)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf commands = STRBUF_INIT;
    struct aq_error err = { 0 };

    nft_rules_add_removal(&commands, net->directory.tag);
    if (nft_run(commands.data, &err) < 0)
        log_warning("the network's table is left: %s", err.text);
    if (net_directory_remove(&net->directory))
        forwarding_restore(net->directory.all);
}

static void net_destroy(struct net *net)
{
    if (net->pool.used && list_is_empty(&net->endpoints))
        net_remove_all(net);
    LIST_FOREACH(it, &net->endpoints)
        net_endpoint_free(LIST_ENTRY(it, struct net_endpoint, link));
    net_directory_close(&net->directory);
    pool_done(&net->pool);
    ports_done(&net->ports);
    free(net->denied);
    free(net->allowed);
    free(net->registries);
    strbuf_done(&net->written);
    free(net);
}

void net_job_ended(struct net *net)
{
    if (--net->jobs == 0 && net->is_freed)
        net_destroy(net);
}

void net_free(struct net *net)
{
    if (!net)
        return;
    net->is_freed = true;
    if (net->jobs == 0)
        net_destroy(net);
}

const char *net_get_note(const struct net *net)
{
    return net->note;
}
