/* SPDX-License-Identifier: Apache-2.0 */
/* exposition_scan.c - see exposition_scan.h */
#include "http/exposition_scan.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS " \t"

/* ---- names and labels ---- */

/* Bytes of the name that 'text' begins with; a metric's name may have colons. */
static size_t exposition_name_len(const char *text, bool is_label)
{
    size_t len = 0;

    while ((text[len] >= 'a' && text[len] <= 'z') || (text[len] >= 'A' && text[len] <= 'Z')
           || text[len] == '_' || (text[len] == ':' && !is_label)
           || (text[len] >= '0' && text[len] <= '9' && len))
        len++;
    return len;
}

/* One 'name="value"' at *at, decoded in place, and the comma behind it. 1; 0 at the closing brace,
 * behind which *at is then; -EINVAL.
 */
static int exposition_take_label(char **at, char **ret_name, char **ret_value)
{
    char *from = *at + strspn(*at, BLANKS), *to;
    size_t len;

    if (*from == '}') {
        *at = from + 1;
        return 0;
    }
    *ret_name = from;
    len = exposition_name_len(from, true);
    from += len;
    to = from;
    from += strspn(from, BLANKS);
    if (!len || *from != '=')
        return -EINVAL;
    from++;
    from += strspn(from, BLANKS);
    if (*from++ != '"')
        return -EINVAL;
    *to = '\0';
    *ret_value = to = from;
    for (; *from && *from != '"'; from++) {
        bool is_escaped = *from == '\\';

        if (is_escaped && !*++from)
            return -EINVAL;
        *to++ = is_escaped && *from == 'n' ? '\n' : *from;
    }
    if (!*from)
        return -EINVAL;
    from++;
    *to = '\0';
    from += strspn(from, BLANKS);
    if (*from != ',' && *from != '}')
        return -EINVAL;
    *at = from + (*from == ',');
    return 1;
}

static int exposition_selector_parse_labels(char *at, struct exposition_selector *ret,
                                            struct aq_error *err)
{
    char *name, *value;
    int r;

    while ((r = exposition_take_label(&at, &name, &value)) > 0) {
        if (ret->label_count == EXPOSITION_LABELS_MAX)
            return aq_fail(err, E2BIG, "has more than %d labels", EXPOSITION_LABELS_MAX);
        if (!*value)
            return aq_fail(err, EINVAL, "label '%.64s' needs a value", name);
        ret->labels[ret->label_count].name = name;
        ret->labels[ret->label_count++].value = value;
    }
    if (r < 0 || at[strspn(at, BLANKS)])
        return aq_fail(err, EINVAL,
                       "labels must be written as in name{label=\"value\",other=\"value\"}");
    return 0;
}

int exposition_selector_parse(const char *text, struct arena *arena,
                              struct exposition_selector *ret, struct aq_error *err)
{
    size_t len = exposition_name_len(text, false);
    struct exposition_selector selector = { .name = NULL };
    char *copy;
    int r = 0;

    if (strlen(text) > EXPOSITION_SELECTOR_MAX)
        return aq_fail(err, E2BIG, "is longer than %d bytes", EXPOSITION_SELECTOR_MAX);
    if (!len || (text[len] && text[len] != '{'))
        return aq_fail(err, EINVAL,
                       "'%.64s' is not the name of a metric: use letters, digits, '_' and ':', and "
                       "choose series as in name{label=\"value\"}",
                       text);
    selector.name = arena_strndup(arena, text, len);
    copy = arena_strdup(arena, text + len);
    if (*copy)
        r = exposition_selector_parse_labels(copy + 1, &selector, err);
    if (r == 0)
        *ret = selector;
    return r;
}

/* ---- lines ---- */

static bool exposition_has_name(const struct exposition_selector *selector, const char *name,
                                size_t len)
{
    return strncmp(selector->name, name, len) == 0 && !selector->name[len];
}

/* The labels of 'selector' that are equal to this one of a series, as bits. */
static unsigned exposition_match_label(const struct exposition_selector *selector, const char *name,
                                       const char *value)
{
    unsigned bits = 0;

    for (size_t i = 0; i < selector->label_count; i++)
        if (strcmp(selector->labels[i].name, name) == 0
            && strcmp(selector->labels[i].value, value) == 0)
            bits |= 1u << i;
    return bits;
}

/* The number behind name and labels. */
static int exposition_read_value(const char *at, double *ret)
{
    char *end;

    at += strspn(at, BLANKS);
    *ret = strtod(at, &end);
    return end == at || (*end && !strchr(BLANKS "#", *end)) ? -EINVAL : 0;
}

/* Add a series of a chosen name; 'at' is behind that name. */
static int exposition_take_series(struct exposition_scan *scan, const char *name, size_t name_len,
                                  char *at)
{
    unsigned matched[EXPOSITION_SELECTORS_MAX] = { 0 };
    size_t blanks = strspn(at, BLANKS);
    char *label, *value;
    double number;
    int r = 0;

    if (at[blanks] == '{') {
        at += blanks + 1;
        while ((r = exposition_take_label(&at, &label, &value)) > 0)
            for (size_t i = 0; i < scan->count; i++)
                matched[i] |= exposition_match_label(&scan->selectors[i], label, value);
    } else if (!blanks) {
        return -EINVAL;
    }
    if (r < 0 || exposition_read_value(at, &number) < 0)
        return -EINVAL;
    for (size_t i = 0; !isnan(number) && i < scan->count; i++)
        if (exposition_has_name(&scan->selectors[i], name, name_len)
            && matched[i] == (1u << scan->selectors[i].label_count) - 1) {
            scan->sums[i].value += number;
            scan->sums[i].series++;
        }
    return 0;
}

static void exposition_take_line(struct exposition_scan *scan)
{
    char *name = scan->line.data;
    bool is_chosen = false, is_broken;
    size_t len;

    if (!scan->line.len)
        return;
    name += strspn(name, BLANKS);
    len = exposition_name_len(name, false);
    for (size_t i = 0; len && !is_chosen && i < scan->count; i++)
        is_chosen = exposition_has_name(&scan->selectors[i], name, len);
    if (is_chosen) {
        name[strcspn(name, "\r")] = '\0';
        is_broken = scan->is_skipping || exposition_take_series(scan, name, len, name + len) < 0;
        for (size_t i = 0; is_broken && i < scan->count; i++)
            scan->sums[i].broken += exposition_has_name(&scan->selectors[i], name, len);
    }
    strbuf_clear(&scan->line);
}

/* ---- the page ---- */

void exposition_scan_begin(struct exposition_scan *scan,
                           const struct exposition_selector *selectors, size_t count,
                           struct exposition_sum *sums)
{
    *scan = (struct exposition_scan){ .selectors = selectors, .sums = sums, .count = count };
    strbuf_init(&scan->line);
    for (size_t i = 0; i < count; i++)
        sums[i] = (struct exposition_sum){ .value = 0 };
}

void exposition_scan_take(struct exposition_scan *scan, const char *bytes, size_t len)
{
    while (len) {
        const char *end = memchr(bytes, '\n', len);
        size_t part = end ? (size_t)(end - bytes) : len;
        size_t room = EXPOSITION_LINE_MAX - scan->line.len;

        scan->is_skipping = scan->is_skipping || part > room;
        strbuf_add(&scan->line, bytes, part > room ? room : part);
        if (end) {
            exposition_take_line(scan);
            scan->is_skipping = false;
            part++;
        }
        bytes += part;
        len -= part;
    }
}

void exposition_scan_finish(struct exposition_scan *scan)
{
    exposition_take_line(scan);
    scan->is_skipping = false;
}

void exposition_scan_done(struct exposition_scan *scan)
{
    strbuf_done(&scan->line);
}
