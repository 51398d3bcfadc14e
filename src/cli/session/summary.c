/* SPDX-License-Identifier: Apache-2.0 */
/* Usage of a batch session compared with its request, as text. */
#include "cli/session/summary.h"

#include <inttypes.h>

#include "base/clock.h"
#include "cli/output/output.h"
#include "cli/session/session.h"

static double summary_number(const json_t *summary, const char *key)
{
    return json_number_value(json_object_get(summary, key));
}

/* Below ten seconds with a decimal: a short program would have used 0 s. */
static void summary_add_span(const char *name, double seconds, struct strbuf *out)
{
    strbuf_adds(out, name);
    if (seconds < 9.95)
        strbuf_addf(out, "%.1f s", seconds);
    else
        cell_write_span((int64_t)(seconds * USEC_PER_SEC), out);
}

static void summary_add_bytes(int64_t bytes, struct strbuf *out)
{
    strbuf_addf(out, "%.4g MiB", (double)bytes / (1 << 20));
}

/* "Memory: peak 300 MiB, 30 % of 1000 MiB" */
static void summary_add_memory(const json_t *summary, const char *name, const char *peak_key,
                               const char *asked_key, struct strbuf *out)
{
    double peak = summary_number(summary, peak_key), asked = summary_number(summary, asked_key);

    if (peak <= 0)
        return;
    strbuf_addf(out, "%s: peak ", name);
    summary_add_bytes((int64_t)peak, out);
    if (asked > 0) {
        strbuf_addf(out, ", %.0f %% of ", 100 * peak / asked);
        summary_add_bytes((int64_t)asked, out);
    }
    strbuf_addc(out, '\n');
}

void summary_write(const json_t *summary, const char *before, struct strbuf *out)
{
    const json_t *suggested = json_object_get(summary, "suggested");
    json_int_t cpu = json_integer_value(json_object_get(suggested, "cpu"));
    json_int_t mem = json_integer_value(json_object_get(suggested, "mem"));
    double asked = summary_number(summary, "cpu_asked");

    if (!json_is_object(summary))
        return;
    strbuf_adds(out, before);
    summary_add_span("Time: ", summary_number(summary, "wall_sec"), out);
    strbuf_addc(out, '\n');
    if (json_is_number(json_object_get(summary, "cpu_sec"))) {
        summary_add_span("CPU: ", summary_number(summary, "cpu_sec"), out);
        if (json_is_number(json_object_get(summary, "cpu_efficiency")))
            strbuf_addf(out, ", %.0f %% of %g core%s",
                        100 * summary_number(summary, "cpu_efficiency"), asked,
                        asked == 1 ? "" : "s");
        strbuf_addc(out, '\n');
    } else if (summary_number(summary, "mem_peak") <= 0) {
        strbuf_adds(out, "CPU, memory: not measured; the program ended too soon\n");
    }
    summary_add_memory(summary, "Memory", "mem_peak", "mem_asked", out);
    if (json_is_number(json_object_get(summary, "gpu_sec"))) {
        summary_add_span("GPU: ", summary_number(summary, "gpu_sec"), out);
        strbuf_adds(out, " busy\n");
    }
    summary_add_memory(summary, "GPU memory", "gpu_mem_peak", "gpu_mem_asked", out);
    if (cpu > 0 || mem > 0)
        strbuf_adds(out, "Suggested:");
    if (cpu > 0)
        strbuf_addf(out, " -r cpu=%" JSON_INTEGER_FORMAT, cpu);
    if (mem > 0)
        strbuf_addf(out, " -r mem=%" JSON_INTEGER_FORMAT "m", mem >> 20);
    strbuf_adds(out, cpu > 0 || mem > 0 ? "\n" : "");
}

void summary_print(struct cli *cli, const json_t *created)
{
    const json_t *one;
    size_t i;

    json_array_foreach(created, i, one) {
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
        const char *id = json_string_value(json_object_get(one, "sessionId"));
        json_t *session = NULL;

        if (id && session_get(cli, id, &session, NULL) == 0)
            summary_write(json_object_get(session, "summary"), "", &out);
        json_decref(session);
        (void)fputs(out.len ? out.data : "", stderr);
    }
}
