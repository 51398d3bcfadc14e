/* SPDX-License-Identifier: Apache-2.0 */
/* shell_word.c - the words of a command, as a shell would part them */
#include "base/shell_word.h"

#include <string.h>

/* Behind the closing quote; in double quotes a backslash takes what follows as it is, if that means
 * something there.
 */
static const char *shell_word_take_quoted(const char *at, char quote, struct strbuf *out)
{
    for (; *at && *at != quote; at++) {
        if (quote == '"' && (*at == '$' || *at == '`'))
            return NULL;
        if (quote == '"' && *at == '\\' && at[1] && strchr("\"\\$`", at[1]))
            at++;
        strbuf_addc(out, *at);
    }
    return *at ? at + 1 : NULL;
}

const char *shell_word_take(const char *at, struct strbuf *out)
{
    while (at && *at && !strchr(" \t\n", *at)) {
        if (strchr("|&;<>()$`*?[#~!{}", *at))
            return NULL;
        if (*at == '\'' || *at == '"') {
            at = shell_word_take_quoted(at + 1, *at, out);
        } else {
            at += *at == '\\' && at[1];
            strbuf_addc(out, *at++);
        }
    }
    return at ? at + strspn(at, " \t\n") : NULL;
}
