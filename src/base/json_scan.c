/* SPDX-License-Identifier: Apache-2.0 */
/* json_scan.c - walk through JSON text without making a tree of it */
#include "base/json_scan.h"

#include <string.h>

static void json_scan_skip_blanks(struct json_scan *scan)
{
    while (scan->at < scan->end
           && (*scan->at == ' ' || *scan->at == '\n' || *scan->at == '\r' || *scan->at == '\t'))
        scan->at++;
}

static bool json_scan_fail(struct json_scan *scan)
{
    scan->failed = true;
    scan->at = scan->end;
    return false;
}

static bool json_scan_take(struct json_scan *scan, char c)
{
    json_scan_skip_blanks(scan);
    if (scan->at == scan->end || *scan->at != c)
        return false;
    scan->at++;
    return true;
}

/* What is at the front of an object or array, or between two of its parts: whether a part follows.
 */
static bool json_scan_next(struct json_scan *scan, char open, char close)
{
    if (json_scan_take(scan, open))
        return !json_scan_take(scan, close);
    if (json_scan_take(scan, ','))
        return true;
    return json_scan_take(scan, close) ? false : json_scan_fail(scan);
}

/* Past a string, of which the opening quote is at the front. */
static bool json_scan_skip_string(struct json_scan *scan)
{
    for (scan->at++; scan->at < scan->end; scan->at++) {
        if (*scan->at == '"') {
            scan->at++;
            return true;
        }
        if (*scan->at == '\\' && ++scan->at == scan->end)
            break;
    }
    return json_scan_fail(scan);
}

/* Past an object or array, whatever is in it. */
static bool json_scan_skip_nested(struct json_scan *scan)
{
    size_t depth = 0;

    while (scan->at < scan->end) {
        char c = *scan->at;

        if (c == '"') {
            if (!json_scan_skip_string(scan))
                return false;
            continue;
        }
        scan->at++;
        if (c == '{' || c == '[')
            depth++;
        else if ((c == '}' || c == ']') && --depth == 0)
            return true;
    }
    return json_scan_fail(scan);
}

static bool json_scan_is_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-' || c == '.' || c == '+'
           || c == 'E';
}

/* Past a number, true, false or null. */
static bool json_scan_skip_word(struct json_scan *scan)
{
    const char *start = scan->at;

    while (scan->at < scan->end && json_scan_is_word(*scan->at))
        scan->at++;
    return scan->at > start ? true : json_scan_fail(scan);
}

struct json_span json_scan_value(struct json_scan *scan)
{
    const char *start;
    bool is_whole;

    json_scan_skip_blanks(scan);
    start = scan->at;
    if (start < scan->end && *start == '"')
        is_whole = json_scan_skip_string(scan);
    else if (start < scan->end && (*start == '{' || *start == '['))
        is_whole = json_scan_skip_nested(scan);
    else
        is_whole = json_scan_skip_word(scan);
    return (struct json_span){ start, is_whole ? (size_t)(scan->at - start) : 0 };
}

bool json_scan_member(struct json_scan *scan, struct json_span *ret_key)
{
    const char *start;

    if (!json_scan_next(scan, '{', '}'))
        return false;
    json_scan_skip_blanks(scan);
    start = scan->at;
    if (start == scan->end || *start != '"' || !json_scan_skip_string(scan))
        return json_scan_fail(scan);
    *ret_key = (struct json_span){ start + 1, (size_t)(scan->at - start) - 2 };
    return json_scan_take(scan, ':') ? true : json_scan_fail(scan);
}

bool json_scan_item(struct json_scan *scan)
{
    return json_scan_next(scan, '[', ']');
}
