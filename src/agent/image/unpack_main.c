/* SPDX-License-Identifier: Apache-2.0 */
/* aliquot-unpack - unpacks one layer of an image for the agent
 *
 * A process of its own, because it reads untrusted archives. It makes the
 * directory LAYERS/HEX of the layer with this diff-id (store_layout.h), visible by a
 * rename when everything in it is on the disk; if that is there, it only compares the
 * blob's digests. On standard output, for the
 * agent: "progress BYTES" (of the blob) now and then, and at the end "done" or
 * "failed CODE FIELD TEXT" ("-" = no field). It dies with the agent.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/image/blob_stream.h"
#include "agent/image/store_layout.h"
#include "agent/image/layer_unpack.h"
#include "agent/image/tool_report.h"
#include "base/fault.h"
#include "base/fs.h"
#include "base/jsonw.h"
#include "model/reference.h"

#define EXIT_USAGE 2

struct unpack_main_job {
    const char *blob, *blob_digest, *diff_id, *layers;
    struct layer_unpack_limits limits;
    int layers_fd;
    char made[LAYOUT_NAME_MAX + 16]; /* ".new-HEX-PID" */
};

static const char usage[] =
    "usage: aliquot-unpack --blob FILE [--blob-digest DIGEST] --diff-id DIGEST\n"
    "                      --layers FOLDER [--max-bytes N] [--max-entries N] [--keep-free N]\n"
    "\n"
    "Unpacks a layer of an image; the agent runs it.\n";

static void unpack_main_on_progress(void *data, int64_t bytes)
{
    (void)data;
    (void)printf("progress %lld\n", (long long)bytes);
    (void)fflush(stdout);
}

/* ---- the layer's directory ---- */

static int unpack_main_write_implied(int directory, const struct confined_tree *tree,
                                     struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    for (size_t i = 0; i < tree->implied.count; i++)
        strbuf_add(&text, tree->implied.entries[i].key, tree->implied.entries[i].key_len + 1);
    return fs_write_quick(directory, "implied", text.data, text.len, 0600, err);
}

static int unpack_main_write_facts(int directory, const struct unpack_main_job *job,
                                   const struct layer_unpack_result *result, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);

    jsonw_object_begin(&w);
    jsonw_member_int(&w, "version", 1);
    jsonw_member_str(&w, "diff_id", job->diff_id);
    jsonw_member_str(&w, "blob", job->blob_digest);
    jsonw_member_int(&w, "size_bytes", result->size_bytes);
    jsonw_member_int(&w, "entries", result->entries);
    jsonw_member_int(&w, "attributes_lost", result->attributes_lost);
    jsonw_object_end(&w);
    return fs_write_quick(directory, "layer.json", text.data, text.len, 0600, err);
}

static int unpack_main_fill(const struct unpack_main_job *job, int directory, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int blob = open(job->blob, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct layer_unpack_result result = { 0 };
    struct confined_tree tree;
    int root, r;

    if (blob < 0)
        return aq_fail_errno(err, "open the blob '%s'", job->blob);
    (void)posix_fadvise(blob, 0, 0, POSIX_FADV_SEQUENTIAL);
    if (mkdirat(directory, "fs", 0755) < 0)
        return aq_fail_errno(err, "make the layer's root");
    root = openat(directory, "fs", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (root < 0)
        return aq_fail_errno(err, "open the layer's root");
    confined_tree_init(&tree, root);
    r = layer_unpack(blob, job->blob_digest, job->diff_id, &job->limits, &tree,
                     unpack_main_on_progress, NULL, &result, err);
    AQ_FAULT("agent.image.unpacked");
    if (r == 0)
        r = unpack_main_write_implied(directory, &tree, err);
    if (r == 0)
        r = unpack_main_write_facts(directory, job, &result, err);
    confined_tree_done(&tree);
    /* one sync for all files is far cheaper than one for each */
    if (r == 0 && syncfs(directory) < 0)
        r = aq_fail_errno(err, "sync the layer");
    return r;
}

static int unpack_main_publish(const struct unpack_main_job *job, struct aq_error *err)
{
    const char *name = layout_digest_hex(job->diff_id);

    if (renameat(job->layers_fd, job->made, job->layers_fd, name) < 0)
        return aq_fail_errno(err, "rename the layer to '%s'", name);
    AQ_FAULT("agent.image.layer-renamed");
    return fsync(job->layers_fd) < 0 ? aq_fail_errno(err, "sync the folder of layers") : 0;
}

/* What processes that were killed left of this layer. */
static void unpack_main_remove_leftovers(const struct unpack_main_job *job)
{
    char prefix[LAYOUT_NAME_MAX];
    struct dirent *entry;
    DIR *dir = opendir(job->layers);

    (void)snprintf(prefix, sizeof(prefix), LAYOUT_UNFINISHED_PREFIX "%s",
                   layout_digest_hex(job->diff_id));
    while (dir && (entry = readdir(dir)))
        if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0)
            (void)fs_remove_tree(job->layers_fd, entry->d_name, NULL);
    if (dir)
        (void)closedir(dir);
}

/* The layer was unpacked from another blob: this one has to contain the same. */
static int unpack_main_compare(const struct unpack_main_job *job, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int blob = open(job->blob, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    AQ_CLEANUP(blob_stream_freep) struct blob_stream *stream = NULL;
    int r;

    if (blob < 0)
        return aq_fail_errno(err, "open the blob '%s'", job->blob);
    r = blob_stream_new(blob, job->limits.bytes_max, &stream, err);
    return r < 0 ? r : blob_stream_verify(stream, job->blob_digest, job->diff_id, err);
}

static int unpack(struct unpack_main_job *job, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int directory = -1;
    int r;

    job->layers_fd = open(job->layers, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (job->layers_fd < 0)
        return aq_fail_errno(err, "open '%s'", job->layers);
    if (faccessat(job->layers_fd, layout_digest_hex(job->diff_id), F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return unpack_main_compare(job, err);
    unpack_main_remove_leftovers(job);
    (void)snprintf(job->made, sizeof(job->made), LAYOUT_UNFINISHED_PREFIX "%s-%d",
                   layout_digest_hex(job->diff_id), (int)getpid());
    if (mkdirat(job->layers_fd, job->made, 0700) < 0)
        return aq_fail_errno(err, "make the layer's folder");
    directory = openat(job->layers_fd, job->made, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    r = directory < 0 ? aq_fail_errno(err, "open the layer's folder")
                      : unpack_main_fill(job, directory, err);
    if (r == 0)
        r = unpack_main_publish(job, err);
    if (r < 0)
        (void)fs_remove_tree(job->layers_fd, job->made, NULL);
    return r;
}

/* ---- the program ---- */

static int unpack_main_parse_options(int argc, char **argv, struct unpack_main_job *job)
{
    static const struct option options[] = {
        { "blob", required_argument, NULL, 'b' },
        { "blob-digest", required_argument, NULL, 'g' },
        { "diff-id", required_argument, NULL, 'd' },
        { "layers", required_argument, NULL, 'l' },
        { "max-bytes", required_argument, NULL, 'm' },
        { "max-entries", required_argument, NULL, 'e' },
        { "keep-free", required_argument, NULL, 'f' },
        { NULL, 0, NULL, 0 },
    };
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'b':
            job->blob = optarg;
            break;
        case 'g':
            job->blob_digest = optarg;
            break;
        case 'd':
            job->diff_id = optarg;
            break;
        case 'l':
            job->layers = optarg;
            break;
        case 'm':
            job->limits.bytes_max = strtoll(optarg, NULL, 10);
            break;
        case 'e':
            job->limits.entries_max = strtoll(optarg, NULL, 10);
            break;
        case 'f':
            job->limits.free_bytes = strtoll(optarg, NULL, 10);
            break;
        default:
            return -EINVAL;
        }
    }
    return job->blob && job->diff_id && job->layers && optind == argc
                   && digest_is_valid(job->diff_id)
                   && (!job->blob_digest || digest_is_valid(job->blob_digest))
               ? 0
               : -EINVAL;
}

int main(int argc, char **argv)
{
    struct unpack_main_job job = { .limits = { .bytes_max = INT64_MAX, .entries_max = INT64_MAX },
                                   .layers_fd = -1 };
    struct aq_error err = { 0 };
    int r;

    if (unpack_main_parse_options(argc, argv, &job) < 0) {
        (void)fputs(usage, stderr);
        return EXIT_USAGE;
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)umask(0);
    r = unpack(&job, &err);
    if (r < 0)
        tool_report(&err);
    else
        (void)puts("done");
    aq_closep(&job.layers_fd);
    return r < 0 || fflush(stdout) != 0;
}
