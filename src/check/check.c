/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - what a program needs of its machine, looked at one thing after the other */
#include "check/check.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "base/jsonw.h"

const char *check_level_name(enum check_level level)
{
    static const char *const names[] = {
        [CHECK_OK] = "ok",         [CHECK_WARNING] = "warning", [CHECK_MISSING] = "missing",
        [CHECK_ABSENT] = "absent", [CHECK_SKIPPED] = "skipped",
    };

    return names[level];
}

#define FILL(array, fmt)                                   \
    do {                                                   \
        va_list args_;                                     \
        va_start(args_, fmt);                              \
        (void)vsnprintf(array, sizeof(array), fmt, args_); \
        va_end(args_);                                     \
    } while (0)

void finding_say(struct finding *finding, enum check_level level, const char *fmt, ...)
{
    finding->level = level;
    finding->meaning[0] = finding->remedy[0] = '\0';
    FILL(finding->text, fmt);
}

void finding_mean(struct finding *finding, const char *fmt, ...)
{
    FILL(finding->meaning, fmt);
}

void finding_mend(struct finding *finding, const char *fmt, ...)
{
    FILL(finding->remedy, fmt);
}

static bool check_is_wanted(const struct check *check, char *const *parts, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(parts[i], check->part) == 0)
            return true;
    return count == 0;
}

static int check_part(const struct check *table, char *part, struct aq_error *err)
{
    for (const struct check *c = table; c->id; c++)
        if (check_is_wanted(c, &part, 1))
            return 0;
    return aq_fail(err, EINVAL, "there are no checks of '%s'", part);
}

static const char *check_text_or_null(const char *text)
{
    return text[0] ? text : NULL;
}

static int check_write(const struct check *check, const struct finding *found, FILE *out)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf line = STRBUF_INIT;
    struct jsonw w = jsonw_make(&line);

    jsonw_object_begin(&w);
    jsonw_member_str(&w, "id", check->id);
    jsonw_member_str(&w, "part", check->part);
    jsonw_member_str(&w, "title", check->title);
    jsonw_member_str(&w, "level", check_level_name(found->level));
    jsonw_member_str(&w, "text", found->text);
    jsonw_member_str(&w, "meaning", check_text_or_null(found->meaning));
    jsonw_member_str(&w, "remedy", check_text_or_null(found->remedy));
    jsonw_object_end(&w);
    return fprintf(out, "%s\n", line.data) >= 0 && fflush(out) == 0 ? 0 : -EIO;
}

int checks_run(const struct check *table, void *data, char *const *parts, int count, FILE *out,
               struct aq_error *err)
{
    int r = 0;

    for (int i = 0; r == 0 && i < count; i++)
        r = check_part(table, parts[i], err);
    for (const struct check *c = table; r == 0 && c->id; c++) {
        struct finding found = { .level = CHECK_SKIPPED };

        if (!check_is_wanted(c, parts, count))
            continue;
        c->look(data, &found);
        if (found.level != CHECK_SKIPPED && check_write(c, &found, out) < 0)
            r = aq_fail(err, EIO, "the findings could not be written");
    }
    return r;
}
