/* SPDX-License-Identifier: Apache-2.0 */
/* command.c - commands of replicas */
#include "serving/command.h"

#include <string.h>

void command_quote(const char *word, struct strbuf *out)
{
    strbuf_addc(out, '\'');
    for (; *word; word++)
        if (*word == '\'')
            strbuf_adds(out, "'\\''");
        else
            strbuf_addc(out, *word);
    strbuf_addc(out, '\'');
}

bool command_is_plain(const char *word)
{
    return *word && !strpbrk(word, " \t\r\n'\"\\$&|;<>()*?[]#~!{}`=%^");
}

/* ---- variables ---- */

/* The value of the variable that 'text' begins with, "{name}...", and where the text goes on. NULL =
 * it begins with none.
 */
static const char *command_find_variable(const char *text, const struct pair_list *variables,
                                         const char **ret_rest)
{
    for (size_t i = 0; text[0] == '{' && i < variables->count; i++) {
        size_t len = strlen(variables->items[i].key);

        if (strncmp(text + 1, variables->items[i].key, len) == 0 && text[1 + len] == '}') {
            *ret_rest = text + len + 2;
            return variables->items[i].value;
        }
    }
    return NULL;
}

static bool command_is_doubled(const char *text)
{
    return (text[0] == '{' || text[0] == '}') && text[1] == text[0];
}

/* Each brace is doubled or part of a known variable. */
static bool command_is_format(const char *text, const struct pair_list *variables)
{
    while (*text) {
        if (command_is_doubled(text))
            text += 2;
        else if (*text != '{' && *text != '}')
            text++;
        else if (!command_find_variable(text, variables, &text))
            return false;
    }
    return true;
}

void command_expand(const char *text, const struct pair_list *variables, struct strbuf *out)
{
    bool is_format = command_is_format(text, variables);

    while (*text) {
        const char *value;

        if (is_format && command_is_doubled(text)) {
            strbuf_addc(out, *text);
            text += 2;
        } else if ((value = command_find_variable(text, variables, &text))) {
            strbuf_adds(out, value);
        } else {
            strbuf_addc(out, *text++);
        }
    }
}

/* ---- the whole ---- */

void command_start(const char *command, const char *shell, const char *folder, struct strbuf *out)
{
    if (folder) {
        strbuf_adds(out, "cd -- ");
        command_quote(folder, out);
        strbuf_adds(out, " || exit; ");
    }
    if (!shell) {
        strbuf_addf(out, "exec %s", command);
        return;
    }
    if (*shell) {
        strbuf_adds(out, "exec ");
        command_quote(shell, out);
    } else {
        strbuf_adds(out, "s=/bin/bash; [ -x $s ] || s=/bin/sh; exec $s");
    }
    strbuf_adds(out, " -c ");
    command_quote(command, out);
}

void command_set_variable(struct pair_list *list, struct arena *arena, const char *name,
                          const char *value)
{
    struct text_pair pair = { name, arena_strdup(arena, value) };
    struct text_pair *items;

    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].key, name) == 0)
            return;
    items = arena_array(arena, list->count + 1, sizeof(*items));
    if (list->count)
        memcpy(items, list->items, list->count * sizeof(*items));
    items[list->count] = pair;
    *list = (struct pair_list){ items, list->count + 1 };
}
