/* Which plugins to load, from the settings and what the machine shows. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "accel/protocol.h"
#include "agent/accel/plugins.h"
#include "base/fs.h"
#include "base/vec.h"

/* What "auto" loads once the machine has the file. */
static const struct {
    const char *name, *sign;
} known[] = {
    { "cuda", "/dev/nvidiactl" },
    { "rocm", "/dev/kfd" },
};

void choice_done(struct choice *choice)
{
    free(choice->name);
    free(choice->path);
    free(choice->config);
    free(choice->sign);
}

void choices_done(struct choices *choices)
{
    for (size_t i = 0; i < choices->count; i++)
        choice_done(&choices->items[i]);
    free(choices->items);
    *choices = (struct choices){ .items = NULL };
}

/* "FOLDER/NAME" where it exists: in the settings' folder, else beside us. NULL
 * if there is none.
 */
static char *find_file(const char *folder, const char *name, const char *const *places, size_t count)
{
    AQ_CLEANUP(aq_freep) char *own = folder ? NULL : fs_program_dir();
    char *path;

    if (folder) {
        path = aq_format("%s/%s", folder, name);
        if (path && access(path, R_OK) == 0)
            return path;
        free(path);
        return NULL;
    }
    for (size_t i = 0; own && i < count; i++) {
        path = aq_format("%s/%s%s", own, places[i], name);
        if (path && access(path, R_OK) == 0)
            return path;
        free(path);
    }
    return NULL;
}

static char *find_plugin(const struct settings *settings, const char *name)
{
    static const char *const places[] = { "", "../lib/aliquot/", "../lib/x86_64-linux-gnu/aliquot/",
                                          "../lib/aarch64-linux-gnu/aliquot/" };
    AQ_CLEANUP(aq_freep) char *file = aq_format("aliquot-accel-%s.so", name);

    return file ? find_file(settings->accel_library, file, places, AQ_COUNT(places)) : NULL;
}

char *choices_find_helper(const struct settings *settings)
{
    static const char *const places[] = { "", "../libexec/aliquot/" };
    char *found;

    if (settings->accel_helper)
        return strdup(settings->accel_helper);
    found = find_file(NULL, "aliquot-accel", places, AQ_COUNT(places));
    return found ? found : strdup("aliquot-accel");
}

/* Takes over the texts; NULL among those that must be there: memory is short. */
static int add(struct choices *choices, struct choice choice, struct aq_error *err)
{
    if (!choice.name || !choice.path
        || !vec_grow(&choices->items, &choices->cap, choices->count + 1, sizeof(choice))) {
        choice_done(&choice);
        return aq_fail(err, ENOMEM, "accelerators");
    }
    choices->items[choices->count++] = choice;
    return 0;
}

/* FOLDER/NAME.toml if it is there. */
static char *usual_config(const struct settings *settings, const char *name)
{
    AQ_CLEANUP(aq_freep) char *file = aq_format("%s.toml", name);

    return settings->accel_folder && file ? find_file(settings->accel_folder, file, NULL, 0) : NULL;
}

/* "NAME", "/PATH.so", each with ":CONFIG". */
static int add_named(const struct settings *settings, const char *text, struct choices *choices,
                     struct aq_error *err)
{
    const char *colon = strchr(text, ':'), *slash;
    AQ_CLEANUP(aq_freep) char *name = strndup(text, colon ? (size_t)(colon - text) : strlen(text));
    AQ_CLEANUP(aq_freep) char *path = NULL;

    if (!name)
        return aq_fail(err, ENOMEM, "accelerators");
    slash = strrchr(name, '/');
    path = slash ? strdup(name) : find_plugin(settings, name);
    if (!path)
        return aq_fail_field(err, EINVAL, "accelerators.plugins",
                             "accelerators.plugins: there is no plugin '%s' (aliquot-accel-%s.so)%s%s",
                             name, name, settings->accel_library ? " in " : "",
                             settings->accel_library ? settings->accel_library : "");
    return add(choices, (struct choice){ .name = strdup(slash ? slash + 1 : name),
                                         .path = AQ_TAKE(path),
                                         .config = colon ? strdup(colon + 1)
                                                         : usual_config(settings, name) }, err);
}

static bool is_known(const char *name, size_t len)
{
    for (size_t i = 0; i < AQ_COUNT(known); i++)
        if (strlen(known[i].name) == len && strncmp(known[i].name, name, len) == 0)
            return true;
    return false;
}

/* A file of the settings' folder that belongs to no other plugin describes a
 * kind of device for the generic one.
 */
static int add_described(const struct settings *settings, struct choices *choices,
                         struct aq_error *err)
{
    struct dirent **names = NULL;
    int count = settings->accel_folder
                    ? scandir(settings->accel_folder, &names, NULL, alphasort) : 0, r = 0;

    for (int i = 0; i < count; i++) {
        size_t len = strlen(names[i]->d_name);
        char *path;

        if (r == 0 && len > 5 && strcmp(names[i]->d_name + len - 5, ".toml") == 0
            && names[i]->d_name[0] != '.' && !is_known(names[i]->d_name, len - 5)
            && (path = find_plugin(settings, "generic")))
            r = add(choices, (struct choice){ .name = strndup(names[i]->d_name, len - 5),
                                              .path = path,
                                              .config = aq_format("%s/%s", settings->accel_folder,
                                                                  names[i]->d_name) }, err);
        free(names[i]);
    }
    free(names);
    return r;
}

static int add_auto(const struct settings *settings, struct choices *choices, struct aq_error *err)
{
    const char *root = getenv(ACCEL_ROOT_VARIABLE);
    int r = 0;

    for (size_t i = 0; r == 0 && i < AQ_COUNT(known); i++) {
        char *path = find_plugin(settings, known[i].name);

        if (path) /* else it is not installed */
            r = add(choices, (struct choice){ .name = strdup(known[i].name), .path = path,
                                              .config = usual_config(settings, known[i].name),
                                              .sign = aq_format("%s%s", root ? root : "",
                                                                known[i].sign) }, err);
    }
    return r < 0 ? r : add_described(settings, choices, err);
}

int choices_make(const struct settings *settings, struct choices *ret, struct aq_error *err)
{
    struct choices choices = { .items = NULL };
    int r = 0;

    for (size_t i = 0; r == 0 && i < settings->accel_plugins.count; i++) {
        const char *text = settings->accel_plugins.items[i];

        r = strcmp(text, "auto") == 0 ? add_auto(settings, &choices, err)
                                      : add_named(settings, text, &choices, err);
    }
    if (r == 0 && settings->accel_mock) {
        AQ_CLEANUP(aq_freep) char *text = aq_format("mock:%s", settings->accel_mock);

        r = text ? add_named(settings, text, &choices, err) : aq_fail(err, ENOMEM, "accelerators");
    }
    if (r < 0)
        choices_done(&choices);
    else
        *ret = choices;
    return r;
}
