#include "up/paths.h"

#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/strbuf.h"

/* Beside this program, or in the bin folder of an installation. */
static int find_program(const char *folder, const char *name, char **ret, struct aq_error *err)
{
    static const char *const places[] = { "", "../bin/", "../../bin/" };

    for (size_t i = 0; i < AQ_COUNT(places); i++) {
        char *path = aq_format("%s/%s%s", folder, places[i], name);

        if (path && access(path, X_OK) == 0) {
            *ret = path;
            return 0;
        }
        free(path);
    }
    return aq_fail(err, ENOENT, "the program %s is not where aliquot-up is; install or build it",
                   name);
}

static int make_folders(const struct paths *paths, struct aq_error *err)
{
    const char *const folders[] = { paths->state, paths->manager_state };
    int r = 0;

    for (size_t i = 0; r == 0 && i < AQ_COUNT(folders); i++)
        r = fs_mkdirs(folders[i], 0700, err);
    return r;
}

int paths_init(struct paths *paths, const char *state_dir, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *folder = fs_program_dir();
    const struct {
        char **path;
        const char *name;
    } files[] = {
        { &paths->state, "" },
        { &paths->lock, "/lock" },
        { &paths->info, "/up.json" },
        { &paths->log, "/up.log" },
        { &paths->manager_state, "/manager" },
        { &paths->manager_log, "/manager.log" },
        { &paths->manager_notify, "/manager.notify" },
        { &paths->credentials, "/admin.json" },
    };
    bool is_complete = folder != NULL;
    int r;

    *paths = (struct paths){ .state = NULL };
    for (size_t i = 0; i < AQ_COUNT(files); i++) {
        *files[i].path = aq_format("%s%s", state_dir, files[i].name);
        is_complete = is_complete && *files[i].path;
    }
    if (!is_complete)
        return aq_fail(err, ENOMEM, "paths");
    r = make_folders(paths, err);
    if (r == 0)
        r = find_program(folder, "aliquot-manager", &paths->manager, err);
    if (r == 0)
        r = find_program(folder, "aliquot-agent", &paths->agent, err);
    return r < 0 ? r : find_program(folder, "aliquot", &paths->cli, err);
}

void paths_done(struct paths *paths)
{
    char **const all[] = {
        &paths->state,          &paths->lock,        &paths->info,         &paths->log,
        &paths->manager_state,  &paths->manager_log, &paths->manager_notify,
        &paths->credentials,    &paths->manager,     &paths->agent,        &paths->cli,
    };

    for (size_t i = 0; i < AQ_COUNT(all); i++) {
        free(*all[i]);
        *all[i] = NULL;
    }
}
