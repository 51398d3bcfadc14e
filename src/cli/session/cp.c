/* SPDX-License-Identifier: Apache-2.0 */
/* Files and folders into a session and out of it. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/memory.h"
#include "cli/session/cp_transfer.h"
#include "cli/session/session.h"
#include "cli/verbs.h"
#include "transfer/beneath.h"

struct cp_opts {
    const char *kernel;
};

/* "SESSION:PATH", or a path of this machine. */
struct cp_place {
    char session[80]; /* "" = here */
    const char *path;
};

static int cp_read_place(const char *word, struct cp_place *ret, struct aq_error *err)
{
    size_t len = strcspn(word, ":/");

    *ret = (struct cp_place){ .path = word };
    if (!word[0])
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "a path is empty");
    if (word[len] != ':')
        return 0;
    if (len == 0 || len >= sizeof(ret->session))
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "'%s' begins with no session's name; a file of that name is './%s'",
                            word, word);
    memcpy(ret->session, word, len);
    ret->path = word + len + 1;
    return 0;
}

static int cp_fail_open(const char *path, struct aq_error *err)
{
    return aq_fail_errno(err, "'%.200s'", path);
}

/* Split a path here: the folder that it is in, opened, and its last part, which is "" for what
 * is in the folder itself (".", "..", "/").
 */
static int cp_open_parent(const char *path, char name[NAME_MAX + 1], int *ret_root,
                          struct aq_error *err)
{
    size_t len = strlen(path), from;
    char above[PATH_MAX];

    if (len >= sizeof(above))
        return aq_fail(err, ENAMETOOLONG, "'%.200s' is too long", path);
    while (len > 1 && path[len - 1] == '/')
        len--;
    for (from = len; from && path[from - 1] != '/'; from--)
        ;
    if (len - from > NAME_MAX)
        return aq_fail(err, ENAMETOOLONG, "'%.200s' is too long", path);
    memcpy(name, path + from, len - from);
    name[len - from] = '\0';
    if (!name[0] || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
        name[0] = '\0';
        from = len;
    }
    memcpy(above, from ? path : ".", from ? from : 1);
    above[from ? from : 1] = '\0';
    *ret_root = open(above, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *ret_root < 0 ? cp_fail_open(above, err) : 0;
}

/* ---- into a session ---- */

static int64_t cp_counted; /* nftw(3) gives its function nothing of ours */

static int cp_count_file(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)path;
    (void)ftw;
    if (type == FTW_F && S_ISREG(st->st_mode))
        cp_counted += st->st_size;
    return 0;
}

static int64_t cp_count_bytes(const char *path)
{
    cp_counted = 0;
    (void)nftw(path, cp_count_file, 16, FTW_PHYS);
    return cp_counted;
}

static int cp_put(struct cp_job *job, const char *source, const struct cp_place *to,
                  bool is_several, struct aq_error *err)
{
    bool is_stream = strcmp(source, "-") == 0;
    size_t len = strlen(to->path);
    bool is_folder = !len || to->path[len - 1] == '/';
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s%s", len ? to->path : ".",
                                                !len || (is_several && !is_folder) ? "/" : "");
    AQ_CLEANUP(aq_closep) int root = -1;
    char name[NAME_MAX + 1] = "";
    int r = 0;

    if (is_stream && (is_several || is_folder))
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "'-' needs the name of the file that is to be written: SESSION:FILE");
    if (!is_stream)
        r = cp_open_parent(source, name, &root, err);
    if (r < 0)
        return r;
    job->path = path;
    job->root = root;
    job->local = name;
    job->total_bytes = !is_stream && isatty(STDERR_FILENO) ? cp_count_bytes(source) : 0;
    r = cp_into_session(job, err);
    return r < 0 && !is_stream ? aq_error_wrap(err, "%s", source) : r;
}

/* ---- out of a session ---- */

/* What the names in the answer's archive begin with; "" = all that is in the work folder. */
static int cp_read_top(const char *path, char top[NAME_MAX + 1], struct aq_error *err)
{
    static const char work[] = "/home/work";
    const size_t len = sizeof(work) - 1;
    char clean[PATH_MAX];
    const char *slash;
    int r;

    if (strncmp(path, work, len) == 0 && (!path[len] || path[len] == '/'))
        path += len + strspn(path + len, "/");
    r = beneath_clean(path, clean, err);
    if (r < 0)
        return r;
    slash = strrchr(clean, '/');
    slash = slash ? slash + 1 : clean;
    memcpy(top, slash, strlen(slash) + 1);
    return 0;
}

static int cp_get(struct cp_job *job, const char *path, const char *to, bool is_several,
                  struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int root = -1;
    char top[NAME_MAX + 1], name[NAME_MAX + 1] = "";
    size_t len = strlen(to);
    struct stat st;
    int r = cp_read_top(path, top, err);

    if (r < 0)
        return r;
    job->path = path[0] ? path : ".";
    job->root = -1;
    if (strcmp(to, "-") == 0)
        return cp_out_of_session(job, err);
    if ((is_several || to[len - 1] == '/') && (r = fs_mkdirs(to, 0777, err)) < 0)
        return r;
    if (stat(to, &st) == 0 && S_ISDIR(st.st_mode))
        root = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    else
        r = cp_open_parent(to, name, &root, err);
    if (r < 0 || root < 0)
        return r < 0 ? r : cp_fail_open(to, err);
    job->root = root;
    job->local = name;
    job->top = top[0] ? top : NULL;
    return cp_out_of_session(job, err);
}

/* ---- the command ---- */

static int cp_check(const struct cp_place *places, int count, struct aq_error *err)
{
    const struct cp_place *to = &places[count - 1];

    for (int i = 0; i < count - 1; i++) {
        if (!places[i].session[0] == !to->session[0])
            return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                                to->session[0] ? "from a session into a session it takes two steps"
                                               : "one side must be a session's: SESSION:PATH");
        if (places[i].session[0] && strcmp(to->path, "-") == 0 && count > 2)
            return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "'-' takes one file");
    }
    return 0;
}

static int cp_copy_all(struct cp_job *job, const struct cp_place *places, int count,
                       struct aq_error *err)
{
    const struct cp_place *to = &places[count - 1];
    int r = 0;

    for (int i = 0; r == 0 && i < count - 1; i++) {
        const char *name = to->session[0] ? to->session : places[i].session;
        struct follow_session session;

        r = session_await(job->cli, name, &session, err);
        if (r < 0)
            return r;
        job->id = session.id;
        job->name = session.name;
        r = to->session[0] ? cp_put(job, places[i].path, to, count > 2, err)
                           : cp_get(job, places[i].path, to->path, count > 2, err);
    }
    return r < 0 ? r : job->failed ? CLI_EXIT_FAILURE : 0;
}

static int cp_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct cp_opts *opts = data;
    struct cp_job job = { .cli = cli, .kernel = opts->kernel };
    struct cp_place *places = aq_alloc_array((size_t)argc, sizeof(*places));
    int r = 0;

    for (int i = 0; r == 0 && i < argc; i++)
        r = cp_read_place(argv[i], &places[i], err);
    if (r == 0)
        r = cp_check(places, argc, err);
    if (r == 0)
        r = cp_copy_all(&job, places, argc, err);
    free(places);
    return r;
}

static const struct cli_opt cp_options[] = {
    SESSION_KERNEL_OPT_ROW(struct cp_opts, kernel),
    CLI_OPT_END,
};

const struct cli_verb verb_cp = {
    .name = "cp",
    .args = "SOURCE... DESTINATION",
    .summary = "Copy files and folders into a session and out of it",
    .details = "SESSION:PATH is a path in the session's work folder, /home/work; any other is\n"
               "one of this machine, '-' its standard input or output. Folders are copied\n"
               "whole. A destination that is a folder, or ends with '/', takes the copies\n"
               "under their names; else it is the new name of the one file or folder.\n"
               "'FOLDER/.' is what is in a folder. Links stay links; fifos, sockets and\n"
               "devices are left out. Files appear when they are complete.",
    .examples = "aliquot cp train.py data notebook:\n"
                "aliquot cp notebook:results .\n"
                "aliquot cp notebook:results/model.pt best.pt\n"
                "pg_dump shop | aliquot cp - notebook:shop.sql",
    .opts = cp_options,
    .opts_size = sizeof(struct cp_opts),
    .min_args = 2,
    .max_args = -1,
    .run = cp_run,
};
