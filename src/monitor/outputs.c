/* SPDX-License-Identifier: Apache-2.0 */
/* outputs.c - the values that the program has handed on by name */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "monitor/monitor_internal.h"

void outputs_open(struct monitor *m)
{
    const struct program *p = &m->program;
    struct aq_error err = { 0 };

    if (!p->output)
        return;
    m->output = values_file_create(p->output, p->has_uid ? p->uid : (uid_t)-1,
                                   p->has_gid ? p->gid : (gid_t)-1, &err);
    if (m->output < 0)
        log_warning("%s", err.text);
}

static int outputs_fail(int r, struct aq_error *err)
{
    if (r == -ESTALE)
        return aq_fail(err, EINVAL,
                       "the file was removed or replaced; open $ALIQUOT_OUTPUT and write into it");
    return aq_fail(err, EINVAL, "the file cannot be read: %s", strerror(-r));
}

char *outputs_read(const struct monitor *m, const struct runner_report *report,
                   struct aq_error *err)
{
    static char bytes[VALUES_FILE_READ_MAX];
    struct strbuf out = STRBUF_INIT;
    int len = m->output >= 0 ? values_file_read(m->output, m->program.output, bytes)
              : report       ? runner_link_read_output(&m->runner, report, bytes)
                             : 0;
    int r = len < 0 ? outputs_fail(len, err) : 0;

    if (r == 0 && len > 0)
        r = name_values_read(bytes, (size_t)len, &out, err);
    if (r == 0 && !strbuf_ok(&out))
        r = aq_fail(err, ENOMEM, "out of memory");
    if (r < 0) {
        strbuf_done(&out);
        (void)aq_error_wrap(err, "$ALIQUOT_OUTPUT");
        return NULL;
    }
    return len > 0 ? strbuf_steal(&out) : NULL;
}

void outputs_close(struct monitor *m)
{
    if (m->output < 0)
        return;
    (void)unlink(m->program.output);
    aq_closep(&m->output);
}
