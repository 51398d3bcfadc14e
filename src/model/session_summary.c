/* SPDX-License-Identifier: Apache-2.0 */
/* session_summary.c - usage of an attempt of a batch session, and suggested requests */
#include "model/session_summary.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_load.h"

#define MIB (INT64_C(1) << 20)
#define GIB (INT64_C(1) << 30)
#define VALUE_MAX (INT64_C(1) << 60) /* of what an agent measured */

/* ---- reading ---- */

/* A member of a metric, 0 if it is not a number; numbers are stored as text. */
static double summary_value(const json_t *metric, const char *member)
{
    const char *text = json_string_value(json_object_get(metric, member));
    double value = text ? strtod(text, NULL) : 0;

    return value > 0 ? AQ_MIN(value, (double)VALUE_MAX) : 0;
}

static bool summary_ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), end_len = strlen(end);

    return len > end_len && strcmp(text + len - end_len, end) == 0;
}

/* Metrics of devices by suffix, such as "cuda_util" and "cuda_mem", for any accelerator plugin. */
static void summary_add_devices(struct session_summary *s, json_t *statistics)
{
    const char *key;
    json_t *metric;

    json_object_foreach(statistics, key, metric) {
        if (summary_ends_with(key, "_util") && strcmp(key, "cpu_util") != 0) {
            s->has_gpu = true;
            s->gpu_sec += summary_value(metric, "stats.avg") / 100
                          * ((double)s->wall_usec / (double)USEC_PER_SEC);
        } else if (summary_ends_with(key, "_mem")) {
            int64_t peak = (int64_t)summary_value(metric, "stats.max");

            s->has_gpu = true;
            if (peak >= s->gpu_mem_peak) {
                s->gpu_mem_peak = peak;
                s->gpu_mem_asked = (int64_t)summary_value(metric, "capacity");
            }
        }
    }
}

void session_summary_add(struct session_summary *s, const char *statistics,
                         const struct slots *requested)
{
    json_auto_t *all = statistics ? json_load_string(statistics, 0) : NULL;
    const json_t *cpu = json_object_get(all, "cpu_used"), *mem = json_object_get(all, "mem");
    int64_t mem_asked = slots_get(requested, slot_name_intern("mem", 3));

    s->kernel_count++;
    s->cpu_asked += (double)slots_get(requested, slot_name_intern("cpu", 3)) / AMOUNT_ONE;
    s->mem_asked = AQ_MAX(s->mem_asked, mem_asked);
    if (cpu) {
        s->has_cpu = true;
        s->cpu_sec += summary_value(cpu, "current") / 1000;
    }
    if (mem && (int64_t)summary_value(mem, "stats.max") >= s->mem_peak) {
        s->has_mem = true;
        s->mem_peak = (int64_t)summary_value(mem, "stats.max");
        s->mem_asked = mem_asked;
    }
    if (all)
        summary_add_devices(s, all);
}

void session_summary_add_measured(struct session_summary *s, const struct measured *measured,
                                  const struct slots *requested)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);

    if (measured && measured->at_usec)
        measured_write(measured, &w);
    session_summary_add(s, text.len ? text.data : NULL, requested);
}

/* ---- suggestions ---- */

static int64_t summary_round_up(int64_t bytes)
{
    int64_t step = bytes < GIB ? 32 * MIB : bytes < 16 * GIB ? 256 * MIB : GIB;

    return (bytes + step - 1) / step * step;
}

int64_t session_summary_suggest_mem(const struct session_summary *s)
{
    int64_t wanted = s->mem_peak + s->mem_peak / 5;

    if (s->was_oom)
        return s->mem_asked <= INT64_MAX / 2 ? 2 * s->mem_asked : 0;
    if (!s->has_mem || s->mem_peak <= 0)
        return 0;
    wanted = summary_round_up(wanted);
    return s->mem_asked ? AQ_MIN(wanted, s->mem_asked) : wanted;
}

int64_t session_summary_suggest_cpu(const struct session_summary *s)
{
    double wall = (double)s->wall_usec / (double)USEC_PER_SEC, cores;
    int64_t asked = s->kernel_count ? (int64_t)(s->cpu_asked / (double)s->kernel_count) : 0, whole;

    if (!s->has_cpu || wall <= 0 || s->kernel_count == 0)
        return 0;
    cores = AQ_MIN(s->cpu_sec / wall / (double)s->kernel_count * 1.2, (double)VALUE_MAX);
    whole = (int64_t)cores;
    whole += (double)whole < cores;
    return asked ? AQ_MAX(AQ_MIN(whole, asked), INT64_C(1)) : AQ_MAX(whole, INT64_C(1));
}

/* ---- writing ---- */

static void summary_write_double(const char *key, bool is_known, double value, struct jsonw *w)
{
    if (!is_known) {
        jsonw_member_null(w, key);
        return;
    }
    jsonw_key(w, key);
    jsonw_double(w, value);
}

static void summary_write_int(const char *key, int64_t value, struct jsonw *w)
{
    if (value)
        jsonw_member_int(w, key, value);
    else
        jsonw_member_null(w, key);
}

void session_summary_write(const struct session_summary *s, struct jsonw *w)
{
    double wall = (double)s->wall_usec / (double)USEC_PER_SEC;
    bool has_efficiency = s->has_cpu && wall > 0 && s->cpu_asked > 0;

    jsonw_object_begin(w);
    summary_write_double("wall_sec", true, wall, w);
    summary_write_double("cpu_sec", s->has_cpu, s->cpu_sec, w);
    summary_write_double("cpu_asked", s->cpu_asked > 0, s->cpu_asked, w);
    summary_write_double("cpu_efficiency", has_efficiency,
                         has_efficiency ? s->cpu_sec / (wall * s->cpu_asked) : 0, w);
    summary_write_int("mem_peak", s->has_mem ? s->mem_peak : 0, w);
    summary_write_int("mem_asked", s->mem_asked, w);
    summary_write_double("gpu_sec", s->has_gpu, s->gpu_sec, w);
    summary_write_int("gpu_mem_peak", s->gpu_mem_peak, w);
    summary_write_int("gpu_mem_asked", s->gpu_mem_asked, w);
    jsonw_key(w, "suggested");
    jsonw_object_begin(w);
    summary_write_int("cpu", session_summary_suggest_cpu(s), w);
    summary_write_int("mem", session_summary_suggest_mem(s), w);
    jsonw_object_end(w);
    jsonw_object_end(w);
}
