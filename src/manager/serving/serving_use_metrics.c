/* SPDX-License-Identifier: Apache-2.0 */
/* serving_use_metrics.c - figures of model services for Prometheus */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/vec.h"
#include "http/exposition.h"
#include "manager/core/services.h"
#include "manager/serving/serving_use.h"

/* A service's name, and what its figures are. */
struct use_shown {
    const char *name;
    struct serving_figures figures;
    struct serving_cold_starts cold_starts;
    int64_t wanted, ready;
};

/* The same of a revision that has answered something. */
struct use_shown_revision {
    const char *name;
    char number[24];
    struct serving_figures figures;
};

/* Families with one series for each service, or with a label for each row of the same name. */
static const struct use_family {
    const char *name, *type, *label, *value;
    const char *help; /* NULL = a further series of the family before */
    size_t at;
    double unit;
} use_families[] = {
#define AT(member) offsetof(struct use_shown, member)
    { "requests_total", "counter", "class", "ok", "Requests to model services, by how they ended",
      AT(figures.ok), 1 },
    { "requests_total", NULL, "class", "client-error", NULL, AT(figures.client_errors), 1 },
    { "requests_total", NULL, "class", "server-error", NULL, AT(figures.server_errors), 1 },
    { "requests_total", NULL, "class", "refused", NULL, AT(figures.refused), 1 },
    { "requests_total", NULL, "class", "broken", NULL, AT(figures.broken), 1 },
    { "in_flight", "gauge", NULL, NULL, "Requests that replicas of model services are answering",
      AT(figures.in_flight), 1 },
    { "queued", "gauge", NULL, NULL, "Requests to model services that wait in proxies",
      AT(figures.queued), 1 },
    { "replicas", "gauge", NULL, NULL, "Replicas of model services that are ready", AT(ready), 1 },
    { "replicas_wanted", "gauge", NULL, NULL, "Replicas of model services that are wanted",
      AT(wanted), 1 },
    { "queue_seconds_total", "counter", NULL, NULL, "Time that answered requests waited in proxies",
      AT(figures.queue_usec), 1e6 },
    { "tokens_total", "counter", "kind", "prompt",
      "Tokens of language models, as the usage of answers says; cached ones are of the prompts",
      AT(figures.prompt_tokens), 1 },
    { "tokens_total", NULL, "kind", "completion", NULL, AT(figures.completion_tokens), 1 },
    { "tokens_total", NULL, "kind", "cached", NULL, AT(figures.cached_tokens), 1 },
    { "cold_starts_total", "counter", NULL, NULL,
      "How often a request woke a model service that slept", AT(cold_starts.count), 1 },
    { "cold_start_seconds_total", "counter", NULL, NULL,
      "Time from requests that woke model services to the first ready replica",
      AT(cold_starts.usec), 1e6 },
#undef AT
};

/* The same for revisions, by what their replicas did. */
static const struct use_class {
    const char *name;
    size_t at;
} use_classes[] = {
    { "ok", offsetof(struct serving_figures, ok) },
    { "client-error", offsetof(struct serving_figures, client_errors) },
    { "server-error", offsetof(struct serving_figures, server_errors) },
    { "broken", offsetof(struct serving_figures, broken) },
};

static void use_write_family(const struct use_family *family, const struct use_shown *shown,
                             size_t count, struct strbuf *out)
{
    char name[64];

    (void)snprintf(name, sizeof(name), "aliquot_service_%s", family->name);
    if (family->help)
        exposition_family(out, name, family->type, family->help);
    for (size_t i = 0; i < count; i++) {
        const char *from = (const char *)&shown[i];

        exposition_begin(out, name);
        exposition_label(out, "service", shown[i].name);
        if (family->label)
            exposition_label(out, family->label, family->value);
        exposition_value(out, (double)*(const int64_t *)(const void *)(from + family->at)
                                  / family->unit);
    }
}

static void use_write_classes(const struct use_shown_revision *shown, size_t count,
                              struct strbuf *out)
{
    static const char name[] = "aliquot_service_revision_requests_total";

    exposition_family(out, name, "counter",
                      "Requests that replicas of revisions got, by how they ended");
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < AQ_COUNT(use_classes); k++) {
            const char *from = (const char *)&shown[i].figures + use_classes[k].at;

            exposition_begin(out, name);
            exposition_label(out, "service", shown[i].name);
            exposition_label(out, "revision", shown[i].number);
            exposition_label(out, "class", use_classes[k].name);
            exposition_value(out, (double)*(const int64_t *)(const void *)from);
        }
}

static void use_write_latency(const struct use_shown_revision *shown, size_t count,
                              struct strbuf *out)
{
    static const char duration[] = "aliquot_service_duration_seconds";
    static const char first_byte[] = "aliquot_service_first_byte_seconds";

    exposition_family(out, duration, "histogram",
                      "Time from a request's way to a replica until the end of the answer");
    for (size_t i = 0; i < count; i++)
        exposition_histogram(
            out, duration,
            (const char *[]){ "service", shown[i].name, "revision", shown[i].number, NULL },
            latency_bounds, LATENCY_BUCKETS - 1, shown[i].figures.durations,
            (double)shown[i].figures.duration_usec / USEC_PER_SEC);
    exposition_family(out, first_byte, "histogram",
                      "Time from a request's way to a replica until the answer's first byte");
    for (size_t i = 0; i < count; i++)
        exposition_histogram(
            out, first_byte,
            (const char *[]){ "service", shown[i].name, "revision", shown[i].number, NULL },
            latency_bounds, LATENCY_BUCKETS - 1, shown[i].figures.first_bytes,
            (double)shown[i].figures.first_byte_usec / USEC_PER_SEC);
}

static struct use_shown use_show(const struct serving_use *use, const struct core *core,
                                 const struct model_service *service)
{
    struct use_shown shown = { .name = service->name,
                               .figures = serving_use_get(use, &service->id),
                               .cold_starts = serving_use_get_cold_starts(use, &service->id),
                               .wanted = service->replicas };
    struct core_replica replica;

    for (const struct session *s = NULL; (s = core_next_replica(core, service, s));)
        shown.ready += core_find_replica(core, s, &replica) && replica.health == CORE_REPLICA_READY
                       && !replica.is_draining;
    return shown;
}

void serving_use_write_metrics(const struct serving_use *use, const struct core *core,
                               struct strbuf *out)
{
    struct use_shown_revision *revisions = NULL;
    struct use_shown *shown = NULL;
    size_t count = 0, cap = 0, revision_count = 0, revision_cap = 0;

    for (const struct model_service *s = NULL; (s = core_next_service(core, s));) {
        vec_grow(&shown, &cap, count + 1, sizeof(*shown));
        shown[count++] = use_show(use, core, s);
        for (size_t i = 0; i < s->revision_count; i++) {
            struct serving_summary summary;
            struct use_shown_revision *one;

            serving_use_sum_revision(use, &s->id, s->revisions[i].number, &summary);
            if (!summary.all.requests)
                continue;
            vec_grow(&revisions, &revision_cap, revision_count + 1, sizeof(*revisions));
            one = &revisions[revision_count++];
            *one = (struct use_shown_revision){ .name = s->name, .figures = summary.all };
            (void)snprintf(one->number, sizeof(one->number), "%lld",
                           (long long)s->revisions[i].number);
        }
    }
    for (size_t i = 0; i < AQ_COUNT(use_families); i++)
        use_write_family(&use_families[i], shown, count, out);
    use_write_classes(revisions, revision_count, out);
    use_write_latency(revisions, revision_count, out);
    free(shown);
    free(revisions);
}
