/* SPDX-License-Identifier: Apache-2.0 */
/* Names and comments of jobs, which may be any text, as a session can have them. */
#include "cli/submit/job_name.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "base/uuid.h"

#define JOB_PREFIX "job-" /* before a name that is too short */
#define SUFFIX_DIGITS 6

static bool job_is_word_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

void job_name_clean(const char *text, size_t max, char ret[SESSION_NAME_MAX + 1])
{
    size_t used = 0;
    bool has_gap = false;

    for (; *text && used < max; text++) {
        bool is_inner = *text == '.' || *text == '-';

        if (!job_is_word_char(*text) && !is_inner) {
            has_gap = true;
            continue;
        }
        if (used == 0 && is_inner)
            continue;
        if (has_gap && used && !is_inner && !strchr("._-", ret[used - 1]))
            ret[used++] = '-';
        has_gap = false;
        if (used < max)
            ret[used++] = *text;
    }
    while (used && (ret[used - 1] == '.' || ret[used - 1] == '-'))
        used--;
    ret[used] = '\0';
    if (used && used < SESSION_NAME_MIN) {
        memmove(ret + strlen(JOB_PREFIX), ret, used + 1);
        memcpy(ret, JOB_PREFIX, strlen(JOB_PREFIX));
    }
}

bool job_tag_clean(const char *text, struct strbuf *out)
{
    size_t len = JOB_TAG_MAX;

    utf8_write_printable(text, strlen(text), out);
    if (out->len > JOB_TAG_MAX) {
        while (len && ((unsigned char)out->data[len] & 0xc0) == 0x80)
            len--;
        strbuf_truncate(out, len);
    }
    return strcmp(out->data, text) != 0;
}

const char *job_script_name(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

    if (strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/proc/", 6) == 0 || !*name
        || !utf8_is_valid(name, strlen(name)))
        return "script";
    return name;
}

void job_name_with_chance(const char *name, char ret[SESSION_NAME_MAX + 1])
{
    struct uuid chance = uuid_random();

    (void)snprintf(ret, SESSION_NAME_MAX + 1, "%.*s.j%02x%02x%02x",
                   SESSION_NAME_MAX - JOB_SUFFIX_MAX, name, chance.bytes[0], chance.bytes[1],
                   chance.bytes[2]);
}

void job_name_of_session(const char *name, char ret[SESSION_NAME_MAX + 1])
{
    size_t len = strlen(name), stem = len > JOB_SUFFIX_MAX ? len - JOB_SUFFIX_MAX : 0;

    if (stem && strncmp(name + stem, ".j", 2) == 0
        && strspn(name + stem + 2, "0123456789abcdef") == SUFFIX_DIGITS)
        len = stem;
    (void)snprintf(ret, SESSION_NAME_MAX + 1, "%.*s", (int)AQ_MIN(len, (size_t)SESSION_NAME_MAX),
                   name);
}
