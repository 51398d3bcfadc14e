/* SPDX-License-Identifier: Apache-2.0 */
/* ssh.h - the SSH server of containers: Debian's dropbear, brought by the node
 *
 * It runs in any image: its loader and libraries are mounted beside it. The
 * runner starts one for each connection to SSH_PORT, as the container's user,
 * who alone can log in, with the session's key. So does OpenSSH's server of SFTP, if the node
 * has it: where dropbear looks for one, the runner is, which starts it by that loader.
 *
 * In sessions for files (IMAGE_OF_FILES) the runner is the user's shell, too, and starts nothing
 * but that server, rsync's and scp's (runner/files_shell.h), as far as the node has them.
 */
#ifndef AQ_AGENT_SSH_SSH_H
#define AQ_AGENT_SSH_SSH_H

#include "agent/runtime/container.h"
#include "base/error.h"
#include "model/cluster_network.h"
#include "model/ssh_key.h"

#define SSH_SERVER "/usr/sbin/dropbear"
#define SSH_CLIENT "/usr/bin/dbclient"
#define SSH_SFTP_SERVER "/usr/lib/openssh/sftp-server"
#define SSH_INSIDE "/opt/kernel/ssh"               /* directory of the program */
#define SSH_REMOTE_SHELL SSH_INSIDE "/aliquot-rsh" /* the runner, as launchers start it */
#define SSH_MOUNTS_MAX 36
#define SSH_SHELLS "ssh/shells"                  /* in config; for images without /etc/shells */
#define SSH_HOST_KEY "dropbear_ed25519_host_key" /* in config/ssh */
#define SSH_HOST_KEY_ECDSA "dropbear_ecdsa_host_key"

struct ssh;

/* Find the program and what it needs; -ENOENT if it is not installed. 'runner' is the path of
 * aliquot-runner, for SFTP. Blocks for the moment that its loader takes.
 */
int ssh_new(const char *program, const char *runner, struct ssh **ret, struct aq_error *err);
void ssh_free(struct ssh *ssh);
/* Kernels of a session reach each other without a client of their images (SSH_REMOTE_SHELL). */
bool ssh_has_client(const struct ssh *ssh);
/* Files can be moved by SFTP. */
bool ssh_has_sftp(const struct ssh *ssh);
AQ_DEFINE_CLEANUP(struct ssh, ssh_free)

/* What is mounted for it; 'ret' has room for SSH_MOUNTS_MAX. The number. */
size_t ssh_mounts(const struct ssh *ssh, bool for_files, struct container_mount *ret);

struct ssh_files {
    const char *config;                    /* the kernel's directory of that name */
    const char *seed;                      /* SSH_SEED_TEXT digits: the session's */
    const char *hostname;                  /* "main1" */
    const char *hosts;                     /* "main1,sub1"; NULL = itself */
    const struct cluster_network *network; /* with the host network: ports; NULL = SSH_PORT */
    const char *own; /* a public key of the user's, who logs in with it, too; NULL = none */
    bool for_files;
};

/* Write config/ssh, and below config/home what belongs into the work directory:
 * id_container, by which users log in, .ssh/authorized_keys, and .ssh/config,
 * by which the session's kernels reach each other, as those of SSH_REMOTE_SHELL. For files only .ssh/authorized_keys, which
 * allows no terminal and forwards nothing.
 */
int ssh_write_files(const struct ssh_files *files, struct aq_error *err);

#endif
