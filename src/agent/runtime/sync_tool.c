#include "agent/runtime/sync_tool.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TOOL_OUTPUT_MAX 65536

char *tool_find(const char *name)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin",
                                                getenv("PATH") ? getenv("PATH") : "");
    char *at = path, *folder;

    if (name[0] == '/')
        return access(name, X_OK) == 0 ? strdup(name) : NULL;
    while (at && (folder = strsep(&at, ":"))) {
        AQ_CLEANUP(aq_freep) char *file = folder[0] == '/' ? aq_format("%s/%s", folder, name) : NULL;

        if (file && access(file, X_OK) == 0)
            return AQ_TAKE(file);
    }
    return NULL;
}

/* Until the other side is closed; what is past the limit is dropped. */
static void read_all(int fd, struct strbuf *out)
{
    char bytes[4096];
    ssize_t got;

    while ((got = read(fd, bytes, sizeof(bytes))) > 0 || (got < 0 && errno == EINTR))
        if (got > 0 && out->len < TOOL_OUTPUT_MAX)
            strbuf_add(out, bytes, (size_t)got);
}

static int spawn(const char *file, const char *const *argv, int output, int errors, pid_t *ret)
{
    posix_spawn_file_actions_t actions;
    int r;

    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    (void)posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
    r = posix_spawn(ret, file, &actions, NULL, (char *const *)(uintptr_t)argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    return -r;
}

/* The last line that is not empty. */
static const char *last_line(struct strbuf *text)
{
    const char *slash;

    while (text->len && text->data[text->len - 1] == '\n')
        strbuf_truncate(text, text->len - 1);
    slash = strrchr(text->data, '\n');
    return slash ? slash + 1 : text->data;
}

int tool_run(const char *const *argv, struct strbuf *out, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *file = tool_find(argv[0]);
    int pair[2], status = 0, r;
    pid_t pid;

    if (!file)
        return aq_fail(err, ENOENT, "there is no program '%s'", argv[0]);
    if (pipe2(pair, O_CLOEXEC) < 0)
        return aq_fail_errno(err, "pipe");
    r = spawn(file, argv, pair[1], pair[1], &pid);
    aq_closep(&pair[1]);
    if (r < 0) {
        aq_closep(&pair[0]);
        return aq_fail(err, -r, "start '%s': %s", file, strerror(-r));
    }
    read_all(pair[0], &text);
    aq_closep(&pair[0]);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return aq_fail(err, EIO, "%s: %s", argv[0],
                       text.len ? last_line(&text) : "it failed without a word");
    if (out)
        strbuf_add(out, text.data, text.len);
    return 0;
}
