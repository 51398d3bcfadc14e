/* SPDX-License-Identifier: Apache-2.0 */
/* A script as a line for the shell of the image. */
#include "cli/submit/job_command.h"

#include <string.h>

#include "base/utf8.h"
#include "cli/session/session_spec.h"

/* A format of printf(1) that gives the bytes: what is no ASCII, or means something to the shell
 * or to printf, in octal.
 */
static void job_quote_bytes(const char *text, struct strbuf *out)
{
    strbuf_addc(out, '\'');
    for (const char *c = text; *c; c++) {
        if ((unsigned char)*c >= 0x80 || strchr("'\\%", *c))
            strbuf_addf(out, "\\%03o", (unsigned)(unsigned char)*c);
        else
            strbuf_addc(out, *c);
    }
    strbuf_addc(out, '\'');
}

void job_command_write(const struct job_command *job, struct strbuf *out)
{
    char *text[] = { (char *)job->text }, *name[] = { (char *)job->name };
    char *interpreter[] = { (char *)job->script->interpreter, (char *)job->script->argument };

    if (utf8_is_valid(job->text, strlen(job->text))) {
        strbuf_adds(out, "printf %s ");
        spec_quote_command(1, text, out);
    } else {
        strbuf_adds(out, "printf ");
        job_quote_bytes(job->text, out);
    }
    strbuf_adds(out, " >\"$HOME\"/");
    spec_quote_command(1, name, out);
    strbuf_adds(out, " && exec ");
    spec_quote_command(job->script->argument ? 2 : 1, interpreter, out);
    strbuf_adds(out, " \"$HOME\"/");
    spec_quote_command(1, name, out);
    strbuf_addc(out, ' ');
    spec_quote_command(job->argc, job->argv, out);
}
