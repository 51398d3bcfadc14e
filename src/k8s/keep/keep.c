/* SPDX-License-Identifier: Apache-2.0 */
/* keep.c - the role that holds the memory files of slices while no plugin runs
 *
 * A memory file has no name: who has it open is all that keeps it. So this holds them, and does
 * nothing else, so that it need not be updated when the plugin is.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "k8s/keep/keep_message.h"
#include "k8s/role.h"

#define PEERS_MAX 8 /* the plugin, and the next one */

struct kept {
    int files[KEEP_FILES];
    char text[KEEP_TEXT_SIZE];
};

struct keep {
    uv_loop_t *loop;
    int listener;
    uv_poll_t accepting; /* its closing frees all this */
    struct list peers;
    size_t peer_count;
    struct map kept; /* key -> struct kept */
    char *path;
};

struct keep_peer {
    struct list link;
    struct keep *keep;
    int fd;
    uv_poll_t poll; /* its closing frees this */
    bool is_listing;
    size_t next; /* the entry that it is to be told next */
};

/* ---- what is kept ---- */

static void keep_entry_free(struct kept *entry)
{
    if (!entry)
        return;
    for (size_t i = 0; i < KEEP_FILES; i++)
        aq_closep(&entry->files[i]);
    free(entry);
}

/* Who lists begins again: the others have other places now. */
static void keep_drop(struct keep *keep, const char *key)
{
    keep_entry_free(map_removes(&keep->kept, key));
    LIST_FOREACH(link, &keep->peers)
        LIST_ENTRY(link, struct keep_peer, link)->next = 0;
}

/* The files are taken where that succeeds. */
static void keep_put(struct keep *keep, const struct keep_message *message, int files[KEEP_FILES])
{
    struct kept *old = map_gets(&keep->kept, message->key), *entry;

    if (files[0] < 0 || files[1] < 0 || !message->key[0]
        || (!old && keep->kept.count >= KEEP_MAX)) {
        log_warning("slice '%s' is not kept: %s", message->key,
                    files[1] < 0 ? "its memory files are missing" : "there are too many");
        return;
    }
    entry = aq_alloc(sizeof(*entry));
    memcpy(entry->text, message->text, sizeof(entry->text));
    map_sets(&keep->kept, message->key, entry);
    keep_entry_free(old);
    for (size_t i = 0; i < KEEP_FILES; i++)
        entry->files[i] = AQ_TAKE_FD(files[i]);
}

/* ---- peers ---- */

static void keep_on_peer(uv_poll_t *poll, int status, int events);

static void keep_peer_on_closed(uv_handle_t *handle)
{
    struct keep_peer *peer = handle->data;

    aq_closep(&peer->fd);
    free(peer);
}

static void keep_peer_close(struct keep_peer *peer)
{
    list_remove(&peer->link);
    peer->keep->peer_count--;
    (void)uv_poll_stop(&peer->poll);
    uv_close((uv_handle_t *)&peer->poll, keep_peer_on_closed);
}

/* As much of the list as the peer takes now. False: it is gone. */
static bool keep_tell(struct keep_peer *peer)
{
    const struct map *kept = &peer->keep->kept;
    int r = 0;

    while (peer->is_listing && r == 0) {
        bool is_end = peer->next >= kept->count;
        const struct kept *entry = is_end ? NULL : kept->entries[peer->next].value;

        r = is_end ? keep_message_send(peer->fd, KEEP_END, "", "", NULL)
                   : keep_message_send(peer->fd, KEEP_ENTRY, kept->entries[peer->next].key,
                                       entry->text, entry->files);
        if (r < 0)
            break;
        peer->next++;
        peer->is_listing = !is_end;
    }
    if (r < 0 && r != -EAGAIN)
        return false;
    (void)uv_poll_start(&peer->poll, UV_READABLE | (peer->is_listing ? UV_WRITABLE : 0),
                        keep_on_peer);
    return true;
}

static bool keep_read(struct keep_peer *peer)
{
    struct keep_message message;
    int files[KEEP_FILES];
    int r = keep_message_receive(peer->fd, &message, files);

    if (r <= 0)
        return r == 0;
    switch (message.kind) {
    case KEEP_PUT:
        keep_put(peer->keep, &message, files);
        break;
    case KEEP_DROP:
        keep_drop(peer->keep, message.key);
        break;
    case KEEP_LIST:
        peer->is_listing = true;
        peer->next = 0;
        break;
    default:
        r = -EPROTO;
    }
    for (size_t i = 0; i < KEEP_FILES; i++)
        aq_closep(&files[i]);
    return r > 0;
}

static void keep_on_peer(uv_poll_t *poll, int status, int events)
{
    struct keep_peer *peer = poll->data;

    if (status < 0 || ((events & UV_READABLE) && !keep_read(peer)) || !keep_tell(peer))
        keep_peer_close(peer);
}

static void keep_on_connection(uv_poll_t *poll, int status, int events)
{
    struct keep *keep = poll->data;
    AQ_CLEANUP(aq_closep) int fd = accept4(keep->listener, NULL, NULL,
                                           SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct keep_peer *peer;
    struct ucred who;
    socklen_t len = sizeof(who);

    (void)status;
    (void)events;
    if (fd < 0 || keep->peer_count >= PEERS_MAX
        || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0 || who.uid != 0)
        return;
    peer = aq_alloc(sizeof(*peer));
    if (uv_poll_init(keep->loop, &peer->poll, fd) < 0) {
        free(peer);
        return;
    }
    peer->keep = keep;
    peer->fd = AQ_TAKE_FD(fd);
    peer->poll.data = peer;
    list_add(&keep->peers, &peer->link);
    keep->peer_count++;
    (void)uv_poll_start(&peer->poll, UV_READABLE, keep_on_peer);
}

/* ---- life ---- */

static void keep_on_closed(uv_handle_t *handle)
{
    struct keep *keep = handle->data;

    aq_closep(&keep->listener);
    free(keep->path);
    free(keep);
}

static void keep_end(void *data)
{
    struct keep *keep = data;

    LIST_FOREACH(link, &keep->peers)
        keep_peer_close(LIST_ENTRY(link, struct keep_peer, link));
    for (size_t i = 0; i < keep->kept.count; i++)
        keep_entry_free(keep->kept.entries[i].value);
    map_done(&keep->kept);
    uv_close((uv_handle_t *)&keep->accepting, keep_on_closed);
}

static int keep_listen(struct keep *keep, const struct settings *settings, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *folder = aq_format("%s/" KEEP_FOLDER, settings->run);
    struct sockaddr_un address;
    int r = fs_mkdirs(folder, 0700, err);

    if (r == 0)
        r = keep_address(settings->run, &address, err);
    if (r < 0)
        return r;
    keep->path = aq_strdup(address.sun_path);
    keep->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (keep->listener < 0 || chmod(folder, 0700) < 0)
        return aq_fail_errno(err, "the folder '%s'", folder);
    (void)unlink(address.sun_path);
    if (bind(keep->listener, (const struct sockaddr *)&address, sizeof(address)) < 0
        || chmod(address.sun_path, 0600) < 0 || listen(keep->listener, PEERS_MAX) < 0)
        return aq_fail_errno(err, "listen on '%s'", address.sun_path);
    return 0;
}

static int keep_begin(uv_loop_t *loop, const struct settings *settings, void **ret,
                      struct aq_error *err)
{
    struct keep *keep = aq_alloc(sizeof(*keep));
    int r;

    keep->loop = loop;
    keep->listener = -1;
    list_init(&keep->peers);
    r = keep_listen(keep, settings, err);
    if (r == 0 && uv_poll_init(loop, &keep->accepting, keep->listener) < 0)
        r = aq_fail(err, EIO, "the socket '%s' cannot be waited for", keep->path);
    if (r < 0) {
        aq_closep(&keep->listener);
        free(keep->path);
        free(keep);
        return r;
    }
    keep->accepting.data = keep;
    (void)uv_poll_start(&keep->accepting, UV_READABLE, keep_on_connection);
    log_info("keeping the memory files of slices for the plugin, at %s", keep->path);
    *ret = keep;
    return 0;
}

const struct role keep_role = {
    .name = "keep",
    .usage = "holds the memory of GPU slices while the plugin is replaced",
    .begin = keep_begin,
    .end = keep_end,
};
