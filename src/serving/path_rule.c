/* SPDX-License-Identifier: Apache-2.0 */
/* path_rule.c - see path_rule.h */
#include "serving/path_rule.h"

#include <stdint.h>
#include <string.h>

#include "base/utf8.h"

static int path_hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Into 'out', which holds PATH_RULE_MAX bytes and a NUL. False for what could be read in two ways. */
static bool path_decode(const char *target, char *out)
{
    size_t len = strcspn(target, "?"), n = 0;

    if (len > PATH_RULE_MAX)
        return false;
    for (size_t i = 0; i < len; i++) {
        int c = (unsigned char)target[i];
        bool is_encoded = c == '%';

        if (is_encoded) {
            if (len - i < 3 || path_hex(target[i + 1]) < 0 || path_hex(target[i + 2]) < 0)
                return false;
            c = path_hex(target[i + 1]) * 16 + path_hex(target[i + 2]);
            i += 2;
        }
        if (c < 0x20 || c == 0x7f || c == '\\' || c == '#'
            || (is_encoded && (c == '/' || c == '.' || c == '%' || c == '?' || c == ';')))
            return false;
        out[n++] = (char)c;
    }
    out[n] = '\0';
    return out[0] == '/' && utf8_is_valid(out, n); /* "/" has longer forms that some decode */
}

/* No segment is empty but the last, consists of dots alone, or has parameters. */
static bool path_is_plain(const char *path)
{
    for (const char *at = path + 1;; at++) {
        size_t len = strcspn(at, "/"), dots = strspn(at, ".");

        if (len == 0)
            return at[0] == '\0';
        if (memchr(at, ';', len) || (dots && dots == len))
            return false;
        at += len;
        if (!*at)
            return true;
    }
}

static bool path_begins_with(const char *path, const char *prefix)
{
    size_t len = strlen(prefix);

    if (len == 0 || strncmp(path, prefix, len) != 0)
        return false;
    return prefix[len - 1] == '/' || path[len] == '\0' || path[len] == '/';
}

bool path_rule_allows(const struct str_list *prefixes, const char *target)
{
    char path[PATH_RULE_MAX + 1];

    if (!path_decode(target, path) || !path_is_plain(path))
        return false;
    for (size_t i = 0; i < prefixes->count; i++)
        if (path_begins_with(path, prefixes->items[i]))
            return true;
    return false;
}
