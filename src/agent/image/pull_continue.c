/* SPDX-License-Identifier: Apache-2.0 */
/* pull_continue.c - runs aliquot-fetch for layers whose download was cut */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/image/pull.h"
#include "base/log.h"

#define REPORT_MAX_BYTES 1024

static void pull_continue_on_output(void *data, const char *bytes, size_t len)
{
    struct pull *pull = data;

    strbuf_add(&pull->report, bytes, AQ_MIN(len, REPORT_MAX_BYTES - pull->report.len));
}

/* The text of "failed CODE FIELD TEXT", else what it wrote on standard error. */
static const char *pull_continue_read_report(struct pull *pull, const char *complaint,
                                             int *ret_code)
{
    int at = 0;

    if (!pull->report.data || sscanf(pull->report.data, "failed %d %*15s %n", ret_code, &at) != 1
        || *ret_code <= 0) {
        *ret_code = EIO;
        return complaint;
    }
    pull->report.data[strcspn(pull->report.data, "\n")] = '\0';
    return pull->report.data + at;
}

static void pull_continue_on_end(void *data, int status, const char *complaint)
{
    struct pull *pull = data;
    struct aq_error err = { 0 };
    const char *text;
    int code;

    pull->tool = NULL;
    if (status == 0) { /* skopeo fetches the rest, and checks the policy */
        pull_fetch_copy(pull, &err);
        if (err.code)
            pull_failed(pull, &err);
        return;
    }
    (void)uv_timer_stop(&pull->timer);
    text = pull_continue_read_report(pull, complaint ? complaint : "", &code);
    if (status == 1) {
        (void)fetch_fail_code(&pull->ref, code, text, &err);
        pull_fetch_failed(pull, &err);
        return;
    }
    log_info("image %s: layers are fetched by skopeo from their first byte: %s", pull->ref.text,
             text);
    pull->is_declined = true;
    pull_fetch(pull);
}

void pull_continue(struct pull *pull, struct aq_error *err)
{
    static const struct tool_events events = { .on_output = pull_continue_on_output,
                                               .on_end = pull_continue_on_end };

    strbuf_clear(&pull->report);
    (void)fetch_layers(pull->images, &pull->ref, pull->directory.path, &events, pull, &pull->tool,
                       err);
}
