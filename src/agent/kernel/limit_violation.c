/* SPDX-License-Identifier: Apache-2.0 */
/* limit_violation.c - reports, and if so configured ends, kernels that exceed their part of a GPU
 */
#include "agent/kernel/limit_violation.h"

#include <string.h>

#include "agent/kernel/kernel.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "model/session.h"

#define LIMIT_VIOLATIONS_MAX 1024 /* bytes that are told; the log has all */

static void limit_violation_note(struct local_kernel *k, const char *text)
{
    char *more;

    if (k->limit_violations && strlen(k->limit_violations) + strlen(text) > LIMIT_VIOLATIONS_MAX)
        return;
    more = k->limit_violations ? aq_format("%s\n%s", k->limit_violations, text) : aq_strdup(text);
    free(k->limit_violations);
    k->limit_violations = more;
}

void limit_violation_handle(void *data, const struct uuid *kernel, const char *text, bool is_breach)
{
    struct agent_daemon *agent = data;
    struct local_kernel *k = kernel_find(agent, kernel);
    bool stops = is_breach && strcmp(agent->settings->gpu_misuse, "stop") == 0;
    const struct msg_kernel_destroy end = { .kernel_id = *kernel, .reason = REASON_GPU_MISUSE };

    log_warning("a GPU is misused kernel=%s: %s%s", uuid_format(kernel, (char[UUID_TEXT_MAX]){ 0 }),
                text, stops ? ": stopped" : "");
    if (!k || kernel_is_final(k))
        return;
    limit_violation_note(k, text);
    kernel_report(k);
    AQ_FAULT("agent.gpu.misused");
    if (stops)
        kernel_on_destroy(agent, &end);
}
