/* SPDX-License-Identifier: Apache-2.0 */
/* Findings as text for users. */
#include <string.h>

#include "cli/admin/doctor.h"
#include "cli/output/prose.h"
#include "cli/output/table.h"

#define DOCTOR_MARGIN 13 /* columns before the text of a finding */

static const struct doctor_level {
    const char *name, *sign, *ascii, *colour, *plural;
} doctor_levels[] = {
    { "ok", "\342\234\223", "+", "\033[32m", "ok" },
    { "warning", "!", "!", "\033[33m", "warnings" },
    { "missing", "\342\234\227", "x", "\033[31m", "missing" },
    { "absent", "-", "-", "\033[2m", "absent" },
};

static const struct {
    const char *part, *heading;
} doctor_headings[] = {
    { "manager", "To run the manager here" },
    { "agent", "To run an agent with sessions as processes" },
    { "containers", "To run sessions in containers" },
    { "gpu", "To give GPUs to sessions" },
    { "proxy", "To show apps to browsers" },
    { "storage", "To keep folders and move their files" },
    { "web", "To serve the console to browsers" },
    { "cluster", "To use the cluster that you are logged in to" },
};

static size_t doctor_find_level(const json_t *finding)
{
    const char *name = output_text(finding, "level");
    size_t i = 0;

    while (i < AQ_COUNT(doctor_levels) - 1 && strcmp(doctor_levels[i].name, name) != 0)
        i++;
    return i;
}

static void doctor_show_heading(const char *part, struct strbuf *out)
{
    strbuf_adds(out, out->len ? "\n" : "");
    for (size_t i = 0; i < AQ_COUNT(doctor_headings); i++)
        if (strcmp(doctor_headings[i].part, part) == 0)
            strbuf_addf(out, "%s (%s)\n", doctor_headings[i].heading, part);
}

/* Texts come from other programs: they must not steer the terminal. What continues the text
 * stands at 'margin'.
 */
static void doctor_show_text(const struct output *o, const char *head, size_t margin,
                             const json_t *text, struct strbuf *out)
{
    static const struct column plain = { "text", "", COLUMN_TEXT, 0 };
    AQ_CLEANUP(strbuf_donep) struct strbuf shown = STRBUF_INIT;

    strbuf_adds(&shown, head);
    cell_write(o, &plain, text, &shown);
    prose_wrap_behind(shown.data, margin, o->width, out);
    strbuf_addc(out, '\n');
}

/* A line below the first one of a finding. */
static void doctor_show_more(const struct output *o, const char *label, const json_t *text,
                             struct strbuf *out)
{
    strbuf_addf(out, "%*s%-7s", DOCTOR_MARGIN, "", label);
    doctor_show_text(o, "", DOCTOR_MARGIN + 7, text, out);
}

static void doctor_show_one(const struct output *o, const json_t *finding, struct strbuf *out)
{
    const struct doctor_level *level = &doctor_levels[doctor_find_level(finding)];
    AQ_CLEANUP(aq_freep) char *title = aq_format("%s: ", output_text(finding, "title"));

    strbuf_addf(out, "  %s%s %-7s%s  ", o->colour ? level->colour : "",
                o->ascii ? level->ascii : level->sign, level->name,
                o->colour ? TABLE_COLOUR_END : "");
    doctor_show_text(o, title, DOCTOR_MARGIN, json_object_get(finding, "text"), out);
    if (output_text(finding, "meaning")[0])
        doctor_show_more(o, "means:", json_object_get(finding, "meaning"), out);
    if (output_text(finding, "remedy")[0])
        doctor_show_more(o, "mend:", json_object_get(finding, "remedy"), out);
}

/* Clock and limits are of the machine, and every part needs them: once is enough. */
static bool doctor_was_shown(const json_t *findings, size_t index)
{
    const json_t *finding = json_array_get(findings, index);

    for (size_t i = 0; i < index; i++) {
        const json_t *former = json_array_get(findings, i);

        if (strcmp(output_text(former, "title"), output_text(finding, "title")) == 0
            && strcmp(output_text(former, "text"), output_text(finding, "text")) == 0)
            return true;
    }
    return false;
}

void doctor_show(const struct output *o, const json_t *findings, struct strbuf *out)
{
    size_t counts[AQ_COUNT(doctor_levels)] = { 0 }, i;
    const char *part = "", *between = "\n";
    json_t *finding;

    json_array_foreach(findings, i, finding) {
        if (doctor_was_shown(findings, i))
            continue;
        if (strcmp(part, output_text(finding, "part")) != 0) {
            part = output_text(finding, "part");
            doctor_show_heading(part, out);
        }
        doctor_show_one(o, finding, out);
        counts[doctor_find_level(finding)]++;
    }
    for (i = 0; i < AQ_COUNT(doctor_levels); i++) {
        if (!counts[i])
            continue;
        strbuf_addf(out, "%s%zu %s", between, counts[i],
                    counts[i] == 1 ? doctor_levels[i].name : doctor_levels[i].plural);
        between = ", ";
    }
    strbuf_addc(out, '\n');
}
