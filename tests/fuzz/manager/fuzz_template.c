/* SPDX-License-Identifier: Apache-2.0 */
/* Templates of sessions and clusters, one by one and in lists: one that is taken asks for something,
 * in commands of which no part of the text is one; one that is not is refused with its place. The
 * text that is kept of a list's entry is the same template. Kernels' roles and dotfiles are read
 * from what the manager sends.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/yaml_load.h"
#include "manager/template/template.h"
#include "manager/template/template_git.h"
#include "model/cluster_role.h"
#include "model/dotfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition)
        __builtin_trap();
}

/* Words of a shell's script are within quotes. */
static void require_quoted(const char *script)
{
    int is_open = 0;

    for (const char *at = script; *at; at++)
        if (*at == '\'' && (is_open || at == script || at[-1] != '\\'))
            is_open = !is_open;
        else if (!is_open)
            require(!strchr("$`\"&<>(){}*?~#", *at));
    require(!is_open);
}

static void check_kept(const struct template_parsed *entry)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct template_parsed *all = NULL;
    size_t len = strlen(entry->text), count = 0;
    struct aq_error err = { 0 };

    if (len > TEMPLATE_BYTES_MAX)
        return;
    require(template_parse(TEMPLATE_SESSION, entry->text, len, &arena, &all, &count, &err) == 0);
    require(count == 1 && strcmp(all->name, entry->name) == 0
            && json_equal(all->json, entry->json));
    template_parsed_free(all, count);
}

static void check_template(const char *text, size_t size, enum template_kind kind)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf clone = STRBUF_INIT;
    struct template_parsed *all = NULL;
    size_t count = 0;
    struct aq_error err = { 0 };

    if (template_parse(kind, text, size, &arena, &all, &count, &err) < 0) {
        require(err.text[0] && strcmp(err.field, "payload") == 0 && !count);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        json_t *request;

        require(all[i].name && all[i].name[0] && all[i].json && all[i].text);
        if (all[i].kind != TEMPLATE_SESSION)
            continue;
        if (all[i].text != text)
            check_kept(&all[i]);
        strbuf_clear(&clone);
        request = template_request(all[i].json, &clone, &err);
        require(request && json_object_get(request, "image") && strbuf_ok(&clone));
        if (clone.len)
            require_quoted(clone.data);
        json_decref(request);
    }
    template_parsed_free(all, count);
}

static void check_kernel(const char *text)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct cluster_role *roles;
    struct dotfile *files;
    size_t count;
    int n = dotfiles_parse(text, &arena, &files, NULL);

    for (int i = 0; i < n; i++)
        require(dotfile_path_is_valid(files[i].path) && files[i].path[0] != '/');
    if (cluster_roles_parse(text, &arena, &roles, &count, NULL) == 0)
        for (size_t i = 0; i < count; i++)
            require(roles[i].name && roles[i].image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    check_template(text, size, TEMPLATE_ANY);
    check_template(text, size, TEMPLATE_SESSION);
    check_template(text, size, TEMPLATE_CLUSTER);
    check_kernel(text);
    (void)yaml_find(text, size, "spec.nodes.1.role");
    free(text);
    return 0;
}
