#include "agent/misuse.h"

#include <string.h>

#include "agent/kernel.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "model/session.h"

#define MISUSE_MAX 1024 /* bytes that are told; the log has all */

static void note(struct local_kernel *k, const char *text)
{
    char *more;

    if (k->misuse && strlen(k->misuse) + strlen(text) > MISUSE_MAX)
        return;
    more = k->misuse ? aq_format("%s\n%s", k->misuse, text) : strdup(text);
    if (!more)
        return; /* it is in the log */
    free(k->misuse);
    k->misuse = more;
}

void misuse_take(void *data, const struct uuid *kernel, const char *text, bool is_breach)
{
    struct agent *agent = data;
    struct local_kernel *k = kernel_find(agent, kernel);
    bool stops = is_breach && strcmp(agent->settings->gpu_misuse, "stop") == 0;
    const struct msg_kernel_destroy end = { .kernel_id = *kernel, .reason = REASON_GPU_MISUSE };

    log_warning("a GPU is misused kernel=%s: %s%s", uuid_format(kernel, (char[UUID_TEXT_MAX]){ 0 }),
                text, stops ? ": stopped" : "");
    if (!k || kernel_is_final(k))
        return;
    note(k, text);
    kernel_report(k);
    AQ_FAULT("agent.gpu.misused");
    if (stops)
        kernel_on_destroy(agent, &end);
}
