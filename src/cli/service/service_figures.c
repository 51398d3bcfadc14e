/* SPDX-License-Identifier: Apache-2.0 */
/* service_figures.c - see service_figures.h */
#include "cli/service/service_figures.h"

#include <math.h>
#include <stdio.h>

#include "base/strbuf.h"

/* As many digits as are worth reading. */
static json_t *figures_number(double value)
{
    return value >= 10 ? json_integer((json_int_t)llround(value))
                       : json_real(round(value * 10) / 10);
}

static void figures_copy(json_t *row, const char *key, const json_t *from, const char *member,
                         double times)
{
    const json_t *value = json_object_get(from, member);

    if (json_is_number(value))
        (void)json_object_set_new(row, key, figures_number(json_number_value(value) * times));
}

void service_figures_add_recent(json_t *row, const json_t *figures)
{
    const json_t *recent = json_object_get(figures, "recent");

    figures_copy(row, "per_second", recent, "per_second", 1);
    figures_copy(row, "tokens_per_second", recent, "tokens_per_second", 1);
    figures_copy(row, "error_percent", recent, "error_ratio", 100);
    figures_copy(row, "recent_mean_ms", recent, "mean_ms", 1);
    figures_copy(row, "p50_ms", recent, "p50_ms", 1);
    figures_copy(row, "p99_ms", recent, "p99_ms", 1);
    figures_copy(row, "first_byte_ms", recent,
                 json_object_get(recent, "p50_first_byte_ms") ? "p50_first_byte_ms"
                                                              : "mean_first_byte_ms",
                 1);
}

void service_figures_add_load(json_t *row, json_int_t in_flight, json_int_t most)
{
    char text[64];

    (void)snprintf(text, sizeof(text), "%lld/%lld", (long long)in_flight, (long long)most);
    (void)json_object_set_new(
        row, "load",
        most > 0 ? json_pack("{s:f, s:s}", "part", (double)in_flight / (double)most, "text", text)
                 : json_integer(in_flight));
}

/* ---- texts ---- */

static json_int_t figures_count(const json_t *figures, const char *key)
{
    return json_integer_value(json_object_get(figures, key));
}

/* "12 requests/s, 0.5 % errors, p50 40 ms, p99 210 ms, first byte 12 ms" */
static void figures_write_recent(const json_t *recent, struct strbuf *out)
{
    static const struct {
        const char *key, *before, *after;
        double times;
        bool may_be_zero;
    } parts[] = {
        { "per_second", "", " requests/s", 1, true },
        { "error_ratio", ", ", " % errors", 100, true },
        { "p50_ms", ", p50 ", " ms", 1, true },
        { "p99_ms", ", p99 ", " ms", 1, true },
        { "p50_first_byte_ms", ", first byte ", " ms", 1, true },
        { "tokens_per_second", ", ", " tokens/s", 1, false },
    };

    if (!figures_count(recent, "requests"))
        return;
    for (size_t i = 0; i < AQ_COUNT(parts); i++) {
        const json_t *value = json_object_get(recent, parts[i].key);
        double number = json_number_value(value) * parts[i].times;

        if (json_is_number(value) && (parts[i].may_be_zero || number > 0))
            strbuf_addf(out, number >= 10 ? "%s%.0f%s" : "%s%.2g%s", parts[i].before, number,
                        parts[i].after);
    }
}

void service_figures_add_texts(json_t *service)
{
    const json_t *figures = json_object_get(service, "figures");
    const json_t *cold = json_object_get(figures, "mean_cold_start_ms");
    AQ_CLEANUP(strbuf_donep) struct strbuf recent = STRBUF_INIT;
    char text[160];

    figures_write_recent(json_object_get(figures, "recent"), &recent);
    if (recent.len)
        (void)json_object_set_new(service, "recent_text", json_string(recent.data));
    if (figures_count(figures, "prompt_tokens") || figures_count(figures, "completion_tokens")) {
        (void)snprintf(text, sizeof(text), "%lld in prompts (%lld cached), %lld in answers",
                       (long long)figures_count(figures, "prompt_tokens"),
                       (long long)figures_count(figures, "cached_tokens"),
                       (long long)figures_count(figures, "completion_tokens"));
        (void)json_object_set_new(service, "tokens_text", json_string(text));
    }
    if (figures_count(figures, "cold_starts")) {
        (void)snprintf(text, sizeof(text), "%lld, %.3g s on average",
                       (long long)figures_count(figures, "cold_starts"),
                       json_number_value(cold) / 1000);
        (void)json_object_set_new(service, "cold_text", json_string(text));
    }
}

/* ---- tokens ---- */

void service_figures_adapt_token(json_t *token)
{
    const json_t *figures = json_object_get(token, "figures");
    json_int_t budget = figures_count(token, "budget"), used = figures_count(token, "used");
    char text[64];

    (void)snprintf(text, sizeof(text), "%lld/%lld", (long long)used, (long long)budget);
    (void)json_object_set_new(
        token, "spent",
        budget ? json_pack("{s:f, s:s}", "part", (double)used / (double)budget, "text", text)
               : json_integer(used));
    (void)json_object_set_new(token, "errors",
                              json_integer(figures_count(figures, "client_errors")
                                           + figures_count(figures, "server_errors")));
    (void)json_object_set_new(token, "refused", json_integer(figures_count(figures, "refused")));
    (void)json_object_set_new(token, "prompt_tokens",
                              json_integer(figures_count(figures, "prompt_tokens")));
    (void)json_object_set_new(token, "completion_tokens",
                              json_integer(figures_count(figures, "completion_tokens")));
    (void)json_object_set_new(token, "cached_tokens",
                              json_integer(figures_count(figures, "cached_tokens")));
}
