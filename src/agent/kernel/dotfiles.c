/* SPDX-License-Identifier: Apache-2.0 */
/* dotfiles.c - the files that a kernel's owners want in its home directory */
#include "agent/kernel/dotfiles.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "model/dotfile.h"

/* The folders on the way to 'path'. */
static int dotfiles_make_folders(int config, char *path, struct aq_error *err)
{
    for (char *at = strchr(path, '/'); at; at = strchr(at + 1, '/')) {
        int r;

        *at = '\0';
        r = mkdirat(config, path, 0755) < 0 && errno != EEXIST
                ? aq_fail_errno(err, "make '%s'", path)
                : 0;
        *at = '/';
        if (r < 0)
            return r;
    }
    return 0;
}

int dotfiles_store(const char *config, const char *dotfiles, struct aq_error *err)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    AQ_CLEANUP(aq_closep) int fd = open(config, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct dotfile *files = NULL;
    int count = dotfiles_parse(dotfiles, &arena, &files, err), r = AQ_MIN(count, 0);

    if (fd < 0)
        return aq_fail_errno(err, "open '%s'", config);
    for (int i = 0; r == 0 && i < count; i++) {
        char path[sizeof(DOTFILES_FOLDER) + 8 + DOTFILE_PATH_MAX];

        (void)snprintf(path, sizeof(path), DOTFILES_FOLDER "/%s/%s", files[i].permission,
                       files[i].path);
        r = dotfiles_make_folders(fd, path, err);
        if (r == 0)
            r = fs_write_quick(fd, path, files[i].data, strlen(files[i].data), 0644, err);
    }
    return r;
}
