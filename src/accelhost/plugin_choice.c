/* SPDX-License-Identifier: Apache-2.0 */
/* Which plugins to load, from the settings and what the machine shows. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "accel/protocol.h"
#include "accelhost/accel_internal.h"
#include "aliquot/accelerator.h"
#include "base/installed.h"
#include "base/memory.h"
#include "base/vec.h"

/* What "auto" loads once the machine has the file. */
static const struct {
    const char *name, *sign;
} known[] = {
    { "cuda", "/dev/nvidiactl" },
    { "rocm", "/dev/kfd" },
};

void plugin_choice_done(struct plugin_choice *plugin_choice)
{
    free(plugin_choice->name);
    free(plugin_choice->path);
    free(plugin_choice->config);
    free(plugin_choice->sign);
}

void plugin_choices_done(struct plugin_choices *plugin_choices)
{
    for (size_t i = 0; i < plugin_choices->count; i++)
        plugin_choice_done(&plugin_choices->items[i]);
    free(plugin_choices->items);
    *plugin_choices = (struct plugin_choices){ .items = NULL };
}

/* "FOLDER/NAME" if it is there, else NULL. */
static char *plugin_choice_find_in(const char *directory, const char *name)
{
    char *path = aq_format("%s/%s", directory, name);

    if (access(path, R_OK) == 0)
        return path;
    free(path);
    return NULL;
}

static char *plugin_choice_find_plugin(const struct accel_settings *settings, const char *name)
{
    AQ_CLEANUP(aq_freep) char *file = aq_format("aliquot-accel-%s.so", name);

    return settings->library ? plugin_choice_find_in(settings->library, file)
                             : installed_find(file);
}

char *plugin_choice_find_helper(const struct accel_settings *settings)
{
    char *found = settings->helper ? aq_strdup(settings->helper) : installed_find("aliquot-accel");

    return found ? found : aq_strdup("aliquot-accel");
}

/* Takes over the texts. */
static void plugin_choice_add(struct plugin_choices *plugin_choices,
                              struct plugin_choice plugin_choice)
{
    vec_grow(&plugin_choices->items, &plugin_choices->cap, plugin_choices->count + 1,
             sizeof(plugin_choice));
    plugin_choices->items[plugin_choices->count++] = plugin_choice;
}

/* FOLDER/NAME.toml if it is there. */
static char *plugin_choice_usual_config(const struct accel_settings *settings, const char *name)
{
    AQ_CLEANUP(aq_freep) char *file = aq_format("%s.toml", name);

    return settings->directory ? plugin_choice_find_in(settings->directory, file) : NULL;
}

/* "NAME", "/PATH.so", each with ":CONFIG". */
static int plugin_choice_add_named(const struct accel_settings *settings, const char *text,
                                   struct plugin_choices *plugin_choices, struct aq_error *err)
{
    const char *colon = strchr(text, ':'), *slash;
    AQ_CLEANUP(aq_freep) char *name = aq_strndup(text,
                                                 colon ? (size_t)(colon - text) : strlen(text));
    AQ_CLEANUP(aq_freep) char *path = NULL;

    slash = strrchr(name, '/');
    path = slash ? aq_strdup(name) : plugin_choice_find_plugin(settings, name);
    if (!path)
        return aq_fail_field(
            err, EINVAL, "accelerators.plugins",
            "accelerators.plugins: there is no plugin '%s' (aliquot-accel-%s.so)%s%s", name, name,
            settings->library ? " in " : "", settings->library ? settings->library : "");
    plugin_choice_add(
        plugin_choices,
        (struct plugin_choice){ .name = aq_strdup(slash ? slash + 1 : name),
                                .path = AQ_TAKE(path),
                                .config = colon ? aq_strdup(colon + 1)
                                                : plugin_choice_usual_config(settings, name) });
    return 0;
}

static bool plugin_choice_is_known(const char *name, size_t len)
{
    for (size_t i = 0; i < AQ_COUNT(known); i++)
        if (strlen(known[i].name) == len && strncmp(known[i].name, name, len) == 0)
            return true;
    return false;
}

/* A file of the settings' directory that belongs to no other plugin describes a
 * kind of device for the generic one.
 */
static void plugin_choice_add_described(const struct accel_settings *settings,
                                        struct plugin_choices *plugin_choices)
{
    struct dirent **names = NULL;
    int count = settings->directory ? scandir(settings->directory, &names, NULL, alphasort) : 0;

    for (int i = 0; i < count; i++) {
        size_t len = strlen(names[i]->d_name);
        char *path;

        if (len > 5 && strcmp(names[i]->d_name + len - 5, ".toml") == 0
            && names[i]->d_name[0] != '.' && !plugin_choice_is_known(names[i]->d_name, len - 5)
            && (path = plugin_choice_find_plugin(settings, "generic")))
            plugin_choice_add(plugin_choices, (struct plugin_choice){
                                                  .name = aq_strndup(names[i]->d_name, len - 5),
                                                  .path = path,
                                                  .config = aq_format("%s/%s", settings->directory,
                                                                      names[i]->d_name) });
        free(names[i]);
    }
    free(names);
}

static void plugin_choice_add_auto(const struct accel_settings *settings,
                                   struct plugin_choices *plugin_choices)
{
    const char *root = getenv(ACCEL_ROOT_VARIABLE);

    for (size_t i = 0; i < AQ_COUNT(known); i++) {
        char *path = plugin_choice_find_plugin(settings, known[i].name);

        if (path) /* else it is not installed */
            plugin_choice_add(plugin_choices,
                              (struct plugin_choice){
                                  .name = aq_strdup(known[i].name),
                                  .path = path,
                                  .config = plugin_choice_usual_config(settings, known[i].name),
                                  .sign = aq_format("%s%s", root ? root : "", known[i].sign) });
    }
    plugin_choice_add_described(settings, plugin_choices);
}

int plugin_choices_make(const struct accel_settings *settings, struct plugin_choices *ret,
                        struct aq_error *err)
{
    struct plugin_choices plugin_choices = { .items = NULL };
    int r = 0;

    if (settings->linked) {
        plugin_choice_add(
            &plugin_choices,
            (struct plugin_choice){ .name = aq_strdup(settings->linked->name),
                                    .path = aq_strdup(settings->linked->name),
                                    .config = settings->mock ? aq_strdup(settings->mock) : NULL });
        *ret = plugin_choices;
        return 0;
    }
    for (size_t i = 0; r == 0 && i < settings->plugins.count; i++) {
        const char *text = settings->plugins.items[i];

        if (strcmp(text, "auto") == 0)
            plugin_choice_add_auto(settings, &plugin_choices);
        else
            r = plugin_choice_add_named(settings, text, &plugin_choices, err);
    }
    if (r == 0 && settings->mock) {
        AQ_CLEANUP(aq_freep) char *text = aq_format("mock:%s", settings->mock);

        r = plugin_choice_add_named(settings, text, &plugin_choices, err);
    }
    if (r < 0)
        plugin_choices_done(&plugin_choices);
    else
        *ret = plugin_choices;
    return r;
}
