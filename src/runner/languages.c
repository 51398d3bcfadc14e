/* SPDX-License-Identifier: Apache-2.0 */
/* The languages whose code can be run in this container. */
#include "runner/languages.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runner/jupyter_driver.h"
#include "runner/python_driver.h"

#define VARIABLE "ALIQUOT_INTERPRETER_"
#define JUPYTER "jupyter:"

static const char language_shell_driver[] = "trap 'return 130 2>/dev/null || :' INT\n"
                                            "while IFS= read -r aliquot_file <&3; do\n"
                                            "  . \"$aliquot_file\" 3>&- </dev/null\n"
                                            "  echo $? >&3\n"
                                            "done\n";

/* $1 is the file. */
static const char language_c_driver[] =
    "cc -x c -o \"$1.program\" \"$1\" -lm && exec \"$1.program\"\n";

/* What the image says that it is for; NULL = nothing. */
static const char *language_own(void)
{
    const char *type = getenv("ALIQUOT_RUNTIME_TYPE");

    return type && *type && strcmp(type, "app") != 0 ? type : NULL;
}

static const char *language_python(void)
{
    const char *own = language_own(), *path = getenv("ALIQUOT_RUNTIME_PATH");

    return own && strcmp(own, "python") == 0 && path && *path ? path : "python3";
}

bool language_parse(const char *variable, struct language *ret)
{
    const size_t prefix = sizeof(VARIABLE) - 1;
    const char *name = variable + prefix;
    size_t len = strncmp(variable, VARIABLE, prefix) == 0
                     ? strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")
                     : 0;
    const char *value = name + len + 1;

    if (!len || len > EXECUTION_LANGUAGE_MAX || name[len] != '=' || !*value)
        return false;
    *ret = (struct language){ .kind = LANGUAGE_READER, .command = value };
    memcpy(ret->name, name, len);
    if (strncmp(value, JUPYTER, sizeof(JUPYTER) - 1) == 0) {
        ret->kind = LANGUAGE_JUPYTER;
        ret->command = value + sizeof(JUPYTER) - 1;
    }
    return *ret->command != '\0';
}

static struct language *language_named(struct language *languages, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(languages[i].name, name) == 0)
            return &languages[i];
    return NULL;
}

size_t languages_find(const char *const *variables, struct language ret[LANGUAGES_MAX])
{
    const struct language usual[] = {
        { "python", LANGUAGE_PYTHON, NULL },
        { "shell", LANGUAGE_READER, NULL },
        { "c", LANGUAGE_ONCE, NULL },
    };
    size_t count = AQ_COUNT(usual);

    memcpy(ret, usual, sizeof(usual));
    for (; *variables; variables++) {
        struct language found, *place;

        if (!language_parse(*variables, &found))
            continue;
        place = language_named(ret, count, found.name);
        if (place)
            *place = found;
        else if (count < LANGUAGES_MAX)
            ret[count++] = found;
    }
    return count;
}

static const char *language_usual(void)
{
    static const char *const places[] = { "/usr/bin/python3", "/usr/local/bin/python3",
                                          "/opt/conda/bin/python3", "/bin/python3" };

    for (size_t i = 0; i < AQ_COUNT(places); i++)
        if (access(places[i], X_OK) == 0)
            return "python";
    return "shell";
}

const struct language *language_choose(const struct language *languages, size_t count,
                                       const char *name)
{
    const char *own = language_own();

    if (strcmp(name, "-") == 0)
        name = own ? own : language_usual();
    return language_named((struct language *)(uintptr_t)languages, count, name);
}

void language_refuse(const struct language *languages, size_t count, const char *name,
                     struct strbuf *out)
{
    const char *own = language_own();

    if (strcmp(name, "-") == 0)
        strbuf_addf(out,
                    "the image's label ai.backend.runtime-type says '%.64s', and none of its "
                    "labels aliquot.interpreter.NAME how that is run; name a language",
                    own ? own : "");
    else
        strbuf_addf(out, "the language '%s' is none of this session's", name);
    for (size_t i = 0; i < count; i++)
        strbuf_addf(out, "%s%s", i ? ", " : ": ", languages[i].name);
}

void language_command(const struct language *language, const char *file,
                      const char *ret[LANGUAGE_ARGUMENTS_MAX])
{
    bool has_bash = access("/bin/bash", X_OK) == 0 || access("/usr/bin/bash", X_OK) == 0;
    const char *command = language->command;
    const char *made[][LANGUAGE_ARGUMENTS_MAX] = {
        [LANGUAGE_PYTHON] = { language_python(), "-c", python_driver },
        [LANGUAGE_JUPYTER] = { language_python(), "-c", jupyter_driver, command },
        [LANGUAGE_READER] = { command || !has_bash ? "sh" : "bash", "-c",
                              command ? command : language_shell_driver },
        [LANGUAGE_ONCE] = { "sh", "-c", language_c_driver, "sh", file },
    };

    memcpy(ret, made[language->kind], sizeof(made[0]));
}
