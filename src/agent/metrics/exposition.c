/* SPDX-License-Identifier: Apache-2.0 */
/* exposition.c - the last sample for Prometheus, at /metrics */
#include "http/exposition.h"

#include <errno.h>
#include <stdio.h>

#include "agent/kernel/kernel.h"
#include "agent/metrics/stats_collector.h"
#include "base/log.h"

#define DEVICE "backendai_device_utilization"
#define CONTAINER "backendai_container_utilization"

/* The raw measurement: of counters what they have counted, for rate(). */
static void exposition_put_device(const struct agent_daemon *agent,
                                  const struct msg_statistics *sample,
                                  const struct msg_device_values *owner,
                                  const struct msg_value *value, struct strbuf *out)
{
    for (int is_capacity = 0; is_capacity <= (value->capacity >= 0); is_capacity++) {
        exposition_begin(out, DEVICE);
        exposition_label(out, "device_metric_name", sample->metrics[value->metric].key);
        exposition_label(out, "agent_id", agent->settings->id);
        exposition_label(out, "device_id", owner->device);
        exposition_label(out, "value_type", is_capacity ? "capacity" : "current");
        exposition_value(out, is_capacity ? value->capacity : value->value);
    }
}

static void exposition_put_container(const struct agent_daemon *agent,
                                     const struct msg_statistics *sample,
                                     const struct local_kernel *k, const struct msg_value *value,
                                     struct strbuf *out)
{
    const struct kernel_spec *spec = kernel_get_spec(k);
    char kernel[UUID_TEXT_MAX], session[UUID_TEXT_MAX];

    for (int is_capacity = 0; is_capacity <= (value->capacity >= 0); is_capacity++) {
        exposition_begin(out, CONTAINER);
        exposition_label(out, "container_metric_name", sample->metrics[value->metric].key);
        exposition_label(out, "agent_id", agent->settings->id);
        exposition_label(out, "kernel_id", uuid_format(&k->id, kernel));
        exposition_label(out, "session_id", uuid_format(&k->session_id, session));
        exposition_label(out, "user_id", spec->user_id ? spec->user_id : "undefined");
        exposition_label(out, "project_id", spec->group_id ? spec->group_id : "undefined");
        exposition_label(out, "value_type", is_capacity ? "capacity" : "current");
        exposition_value(out, is_capacity ? value->capacity : value->value);
    }
}

static void exposition_put_devices(const struct agent_daemon *agent,
                                   const struct msg_statistics *sample, struct strbuf *out)
{
    exposition_family(out, DEVICE, "gauge",
                      "What a device of the node uses; counters as they are counted");
    for (size_t i = 0; i < sample->device_count; i++)
        for (size_t v = 0; v < sample->devices[i].value_count; v++)
            exposition_put_device(agent, sample, &sample->devices[i], &sample->devices[i].values[v],
                                  out);
}

/* Kernels that have ended since the sample are left out. */
static void exposition_put_containers(const struct agent_daemon *agent,
                                      const struct msg_statistics *sample, struct strbuf *out)
{
    exposition_family(out, CONTAINER, "gauge", "What a kernel uses; counters as they are counted");
    for (size_t i = 0; i < sample->kernel_count; i++) {
        const struct msg_kernel_values *owner = &sample->kernels[i];
        const struct local_kernel *k = map_get(&agent->kernels, owner->kernel_id.bytes,
                                               sizeof(owner->kernel_id.bytes));

        for (size_t v = 0; k && !kernel_is_final(k) && v < owner->value_count; v++)
            exposition_put_container(agent, sample, k, &owner->values[v], out);
    }
}

/* The sample as Prometheus' text format, owners of kernels as labels, under
 * the names that Backend.AI's agents use.
 */
static void exposition_write(const struct agent_daemon *agent, const struct msg_statistics *sample,
                             struct strbuf *out)
{
    if (sample) {
        exposition_put_devices(agent, sample, out);
        exposition_put_containers(agent, sample, out);
    }
    exposition_single(out, "aliquot_agent_kernels", "gauge",
                      "Kernels that have a folder on this node", (double)agent->kernels.count);
    exposition_single(out, "aliquot_agent_connected", "gauge",
                      "Whether this agent is connected to its manager",
                      agent->link && link_client_is_connected(agent->link));
    if (agent->data_path)
        data_path_write_metrics(agent->data_path, out);
    exposition_single(out, "aliquot_agent_start_time_seconds", "gauge",
                      "When this agent was started, in seconds since 1970",
                      (double)agent->started_usec / 1e6);
}

/* ---- where it is served ---- */

#define FIRST_PORT 6003
#define PORTS 16 /* agents of one machine take one each */

static void exposition_write_all(void *data, struct strbuf *out)
{
    const struct agent_daemon *agent = data;

    exposition_write(agent, stats_collector_last(agent->stats), out);
}

static int exposition_serve_at(struct agent_daemon *agent, const char *address,
                               struct aq_error *err)
{
    const struct settings *settings = agent->settings;

    return metrics_listen(agent->loop,
                          &(struct metrics_conf){ .address = address,
                                                  .tls_cert = settings->metrics_tls_cert,
                                                  .tls_key = settings->metrics_tls_key,
                                                  .insecure = settings->metrics_insecure,
                                                  .write = exposition_write_all,
                                                  .data = agent },
                          &agent->metrics, err);
}

static int exposition_serve_at_free_port(struct agent_daemon *agent, struct aq_error *err)
{
    int r = -EADDRINUSE;

    for (int i = 0; r == -EADDRINUSE && i < PORTS; i++) {
        char address[32];

        (void)snprintf(address, sizeof(address), "127.0.0.1:%d", FIRST_PORT + i);
        r = exposition_serve_at(agent, address, err);
    }
    return r;
}

int exposition_serve(struct agent_daemon *agent, struct aq_error *err)
{
    const char *address = agent->settings->metrics_listen;
    int r = address ? exposition_serve_at(agent, address, err)
                    : exposition_serve_at_free_port(agent, err);

    if (r == -EADDRINUSE) {
        log_warning("/metrics is not served: %s; [metrics] listen can be another address or off",
                    err->text);
        return 0;
    }
    if (r == 0 && agent->metrics)
        log_info("serving /metrics on port %u", (unsigned)metrics_port(agent->metrics));
    return r;
}
