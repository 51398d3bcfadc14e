/* SPDX-License-Identifier: Apache-2.0 */
/* A stranger's backup: its header, and what is sealed in it by one who knows the passphrase,
 * compressed or not.
 * Nothing appears beside the folder that it is unpacked into.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "manager/backup/members.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PLAIN "aliquot-backup 1\n"
#define COMPRESSED "aliquot-backup 2\n"
#define COST (sizeof(PLAIN) - 1 + crypto_pwhash_SALTBYTES)
#define PIECE ((size_t)64 << 10)
#define FILE_MAX ((rlim_t)1 << 20) /* some bytes of a frame are 128 KiB of zeros */

static char folder[64] = "/dev/shm/aq-fuzz-backup-XXXXXX"; /* in memory: disks stall */
static const char passphrase[] = "correct horse";

static void require(int condition)
{
    if (!condition)
        __builtin_trap();
}

static void remove_folder(void)
{
    (void)fs_remove_tree(AT_FDCWD, folder, NULL);
}

static void write_all(int fd, const void *bytes, size_t size)
{
    require(fs_write_all(fd, bytes, size) == 0);
}

/* As it is, but for a cost that is valid: it becomes the least. */
static void write_raw(int fd, const uint8_t *data, size_t size)
{
    uint8_t head[COST + 4];
    size_t len = size < sizeof(head) ? size : sizeof(head);

    memcpy(head, data, len);
    if (len == sizeof(head) && (head[COST] || head[COST + 1]) && (head[COST + 2] || head[COST + 3]))
        memcpy(head + COST, (uint8_t[]){ 1, 0, 1, 0 }, 4);
    write_all(fd, head, len);
    write_all(fd, data + len, size - len);
}

/* Sealed as one piece. */
static void write_sealed(int fd, const char *magic, const uint8_t *data, size_t size)
{
    static const uint8_t salt[crypto_pwhash_SALTBYTES], cost[8] = { 1, 0, 1, 0 };
    static uint8_t key[crypto_secretstream_xchacha20poly1305_KEYBYTES];
    static uint8_t sealed[PIECE + crypto_secretstream_xchacha20poly1305_ABYTES];
    uint8_t stream[crypto_secretstream_xchacha20poly1305_HEADERBYTES];
    crypto_secretstream_xchacha20poly1305_state state;
    unsigned long long len;

    if (!key[0])
        require(crypto_pwhash(key, sizeof(key), passphrase, strlen(passphrase), salt, 1, 1 << 20,
                              crypto_pwhash_ALG_ARGON2ID13)
                == 0);
    require(crypto_secretstream_xchacha20poly1305_init_push(&state, stream, key) == 0);
    write_all(fd, magic, strlen(magic));
    write_all(fd, salt, sizeof(salt));
    write_all(fd, cost, sizeof(cost));
    write_all(fd, stream, sizeof(stream));
    require(crypto_secretstream_xchacha20poly1305_push(
                &state, sealed, &len, data, AQ_MIN(size, PIECE), NULL, 0,
                crypto_secretstream_xchacha20poly1305_TAG_FINAL)
            == 0);
    write_all(fd, sealed, (size_t)len);
}

/* Only regular files, and one folder for those of the authority. */
static void check_entries(const char *path, bool may_have_folder)
{
    DIR *dir = opendir(path);
    struct dirent *entry;
    struct stat st;

    require(dir != NULL);
    while ((entry = readdir(dir))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        require(entry->d_name[0] != '.');
        require(fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0);
        if (S_ISDIR(st.st_mode))
            require(may_have_folder && strcmp(entry->d_name, "ca") == 0);
        else
            require(S_ISREG(st.st_mode) && (st.st_mode & 07777) == 0600);
    }
    (void)closedir(dir);
}

static void extract(struct sealed_file *f)
{
    char in[80], ca[96];
    struct aq_error err = { 0 };
    struct stat st;

    (void)snprintf(in, sizeof(in), "%s/in", folder);
    (void)snprintf(ca, sizeof(ca), "%s/ca", in);
    require(mkdir(in, 0700) == 0);
    if (members_extract(f, in, &err) < 0)
        require(err.text[0]);
    check_entries(in, true);
    if (lstat(ca, &st) == 0 && S_ISDIR(st.st_mode))
        check_entries(ca, false);
    require(fs_remove_tree(AT_FDCWD, in, NULL) == 0);
    check_entries(folder, false);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sealed_file *f = NULL;
    struct aq_error err = { 0 };
    static bool is_ready;
    int fd = memfd_create("backup", MFD_CLOEXEC);

    if (!is_ready)
        require(sodium_init() >= 0 && mkdtemp(folder) && atexit(remove_folder) == 0
                && signal(SIGXFSZ, SIG_IGN) != SIG_ERR
                && setrlimit(RLIMIT_FSIZE, &(struct rlimit){ FILE_MAX, FILE_MAX }) == 0);
    is_ready = true;
    require(fd >= 0);
    if (size && data[0] == 's')
        write_sealed(fd, PLAIN, data + 1, size - 1);
    else if (size && data[0] == 'c')
        write_sealed(fd, COMPRESSED, data + 1, size - 1);
    else
        write_raw(fd, data, size);
    require(lseek(fd, 0, SEEK_SET) == 0);
    if (sealed_file_open(fd, passphrase, &f, &err) < 0)
        require(err.text[0]);
    else
        extract(f);
    sealed_file_free(f);
    (void)close(fd);
    return 0;
}
