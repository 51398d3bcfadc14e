/* SPDX-License-Identifier: Apache-2.0 */
/* Shell lines that set the working directory and output files of an sbatch job. */
#include "cli/submit/job_place.h"

#include <ctype.h>
#include <string.h>

#include "cli/session/session_spec.h"

static const struct {
    char letter;
    const char *expression;
} job_place_letters[] = {
    /* without #SBATCH lines only variables of every session are set */
    { 'A', "${SLURM_ARRAY_JOB_ID:-${SLURM_JOB_ID:-$ALIQUOT_JOB_NUMBER}}" },
    { 'a', "${SLURM_ARRAY_TASK_ID:-4294967294}" },
    { 'j', "${SLURM_JOB_ID:-$ALIQUOT_JOB_NUMBER}" },
    { 'J', "${SLURM_JOB_ID:-$ALIQUOT_JOB_NUMBER}" },
    { 'N', "${SLURMD_NODENAME:-$BACKENDAI_CLUSTER_HOST}" },
    { 'n', "${SLURM_NODEID:-$BACKENDAI_CLUSTER_LOCAL_RANK}" },
    { 's', "batch" },
    { 't', "0" },
    { 'x', "${SLURM_JOB_NAME:-$BACKENDAI_SESSION_NAME}" },
};

/* Quotes a character inside "...". */
static void job_place_add(char c, struct strbuf *out)
{
    if (strchr("\"\\$`", c))
        strbuf_addc(out, '\\');
    strbuf_addc(out, c);
}

static void job_place_expand(const struct job_place *place, char letter, struct strbuf *out)
{
    for (size_t i = 0; i < AQ_COUNT(job_place_letters); i++)
        if (job_place_letters[i].letter == letter) {
            strbuf_adds(out, job_place_letters[i].expression);
            return;
        }
    for (const char *c = letter == 'u' ? place->user : ""; *c; c++)
        job_place_add(*c, out);
}

/* A number behind '%' is a width, which only pads. */
static void job_place_write_pattern(const struct job_place *place, const char *pattern,
                                    struct strbuf *out)
{
    strbuf_addc(out, '"');
    for (const char *c = pattern; *c; c++) {
        if (*c != '%') {
            job_place_add(*c, out);
            continue;
        }
        while (isdigit((unsigned char)c[1]))
            c++;
        if (c[1] == '%' || !c[1])
            job_place_add('%', out);
        else
            job_place_expand(place, c[1], out);
        c += c[1] != '\0';
    }
    strbuf_addc(out, '"');
}

static void job_place_write_directory(const struct job_place *place, struct strbuf *out)
{
    char *words[] = { (char *)place->directory };

    strbuf_adds(out, "cd ");
    spec_quote_command(1, words, out);
    strbuf_adds(out, place->must_have ? " || exit 1\n"
                                      : " || echo \"sbatch: working in $HOME instead\" >&2\n");
}

void job_place_write(const struct job_place *place, struct strbuf *out)
{
    const char *to = place->is_appended ? " >>" : " >";
    bool is_same = place->output && place->error && strcmp(place->output, place->error) == 0;

    if (place->directory)
        job_place_write_directory(place, out);
    if (!place->output && !place->error && !place->input)
        return;
    strbuf_adds(out, "exec");
    if (place->input) {
        strbuf_adds(out, " <");
        job_place_write_pattern(place, place->input, out);
    }
    if (place->output) {
        strbuf_adds(out, to);
        job_place_write_pattern(place, place->output, out);
    }
    if (place->error && !is_same) {
        strbuf_addf(out, " 2%s", to + 1);
        job_place_write_pattern(place, place->error, out);
    } else if (place->output) {
        strbuf_adds(out, " 2>&1");
    }
    strbuf_addc(out, '\n');
}
