/* SPDX-License-Identifier: Apache-2.0 */
/* A definition of an app; its texts are expanded as at its start, with some variables. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runner/app_definition.h"
#include "runner/app_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_expand(const char *text, const json_t *variables)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct aq_error err = { 0 };

    if (app_text_expand(text, variables, &out, &err) < 0 && !err.text[0])
        abort();
}

/* Whatever was accepted can be walked through without another look at its types. */
static void fuzz_use(const json_t *definition, const json_t *variables)
{
    json_t *command = json_object_get(definition, "command"), *action, *word;
    json_t *env = json_object_get(definition, "env");
    const char *name;
    size_t i;

    if (json_is_string(command))
        fuzz_expand(json_string_value(command), variables);
    json_array_foreach(command, i, word)
        fuzz_expand(json_string_value(word), variables);
    json_object_foreach(env, name, word)
        fuzz_expand(json_string_value(word), variables);
    json_array_foreach(json_object_get(definition, "prestart"), i, action)
        if (!*json_string_value(json_object_get(action, "action")))
            abort();
    (void)app_definition_allows(definition, "allowed_envs", "PATH");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_auto_t *variables = json_pack("{s:[i,i],s:s,s:{s:s}}", "ports", 8000, 8001, "runtime_path",
                                       "/usr/bin/python3", "said", "out", "text");
    json_auto_t *definition = NULL;
    struct aq_error err = { 0 };
    int r = app_definition_read((const char *)data, size, &definition, &err);

    if (r == 0)
        fuzz_use(definition, variables);
    else if (!err.text[0])
        abort();
    return 0;
}
